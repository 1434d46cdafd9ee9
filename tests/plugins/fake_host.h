// A host table over plain maps, for tests of plugins without the core. Implements fail, log,
// device_int, device_text and plugin_dir; everything else is null. Not for concurrent use of one
// FakeCall.
#ifndef NETCL_TESTS_PLUGINS_FAKE_HOST_H_
#define NETCL_TESTS_PLUGINS_FAKE_HOST_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/abi/netcl_plugin.hpp"

namespace netcl {
namespace testing {

struct FakeDevice {
  std::map<std::string, int64_t> integers = {{"is_cpu", 1},
                                             {"is_gpu", 0},
                                             {"compute_units", 2},
                                             {"max_work_group", 1024},
                                             {"local_mem_bytes", 65536},
                                             {"max_alloc_bytes", int64_t{1} << 30},
                                             {"vector_width_float", 8},
                                             {"subgroup_min", 0},
                                             {"subgroup_max", 0}};
  std::map<std::string, std::string> texts = {{"arch", ""}, {"extensions", ""}};
  netcl_device* handle() { return reinterpret_cast<netcl_device*>(this); }
};

// One call: what the plugin said in it.
struct FakeCall {
  std::string plugin_dir;
  std::string text;  // of the last fail()
  std::vector<std::string> log;
  netcl_call* handle() { return reinterpret_cast<netcl_call*>(this); }
};

inline FakeCall& of(netcl_call* call) { return *reinterpret_cast<FakeCall*>(call); }

inline netcl_host fake_host() {
  netcl_host host{};
  host.size = sizeof(host);
  host.abi_major = NETCL_ABI_MAJOR;
  host.abi_minor = NETCL_ABI_MINOR;
  host.version = plugin::to_abi("0.0.0-test");
  host.log = [](netcl_call* call, uint32_t, netcl_str text) {
    of(call).log.emplace_back(plugin::view(text));
  };
  host.fail = [](netcl_call* call, netcl_rc code, int64_t, netcl_str text) {
    of(call).text = std::string(plugin::view(text));
    return code;
  };
  host.device_int = [](netcl_call*, netcl_device* device, netcl_str name, int64_t* value) {
    const auto& integers = reinterpret_cast<FakeDevice*>(device)->integers;
    const auto it = integers.find(std::string(plugin::view(name)));
    if (it == integers.end()) return netcl_rc{NETCL_E_ARG};
    *value = it->second;
    return netcl_rc{NETCL_OK};
  };
  host.device_text = [](netcl_call*, netcl_device* device, netcl_str name, netcl_sink sink,
                        void* ctx) {
    const auto& texts = reinterpret_cast<FakeDevice*>(device)->texts;
    const auto it = texts.find(std::string(plugin::view(name)));
    if (it == texts.end()) return netcl_rc{NETCL_E_ARG};
    const netcl_str text = plugin::to_abi(it->second);
    return sink(ctx, &text);
  };
  host.plugin_dir = [](netcl_call* call, netcl_sink sink, void* ctx) {
    const netcl_str text = plugin::to_abi(of(call).plugin_dir);
    return sink(ctx, &text);
  };
  return host;
}

}  // namespace testing
}  // namespace netcl

#endif  // NETCL_TESTS_PLUGINS_FAKE_HOST_H_
