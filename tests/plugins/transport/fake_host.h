// A host table for transport tests: one raw OpenCL context, and set-up through a control segment.
//
// Ownership: a FakeHost outlives the plugins and groups opened with it. Threads: any.
#ifndef NETCL_TESTS_PLUGINS_TRANSPORT_FAKE_HOST_H_
#define NETCL_TESTS_PLUGINS_TRANSPORT_FAKE_HOST_H_

#include <CL/cl.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/abi/netcl_transport.hpp"
#include "core/base/error.h"
#include "core/collective/bootstrap.h"
#include "core/collective/communicator.h"

struct netcl_call {
  netcl_rc code = NETCL_OK;
  std::string text;
};

namespace netcl::testing {

// The first OpenCL device of the machine, with one context and one queue of the test's own.
class TestDevice {
 public:
  TestDevice() {
    cl_uint n = 0;
    NETCL_CHECK(clGetPlatformIDs(1, &platform, &n) == CL_SUCCESS && n > 0, ErrorCode::kDevice,
                "the tests need an OpenCL platform");
    cl_int code = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr);
    NETCL_CHECK(code == CL_SUCCESS, ErrorCode::kDevice, "clGetDeviceIDs: ", code);
    context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
    NETCL_CHECK(code == CL_SUCCESS, ErrorCode::kDevice, "clCreateContext: ", code);
  }
  TestDevice(const TestDevice&) = delete;
  TestDevice& operator=(const TestDevice&) = delete;
  ~TestDevice() { clReleaseContext(context); }
  netcl_device* handle() { return reinterpret_cast<netcl_device*>(this); }

  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  bool is_cpu = true;  // what the host says of it
};

inline netcl_rc fake_fail(netcl_call* call, netcl_rc code, int64_t, netcl_str text) {
  call->code = code;
  call->text.assign(text.ptr, text.len);
  return code;
}

template <typename Body>
netcl_rc fake_boot(netcl_call* call, netcl_boot* boot, Body&& body) {
  auto& bootstrap = *reinterpret_cast<Bootstrap*>(boot);
  try {
    body(bootstrap);
    return NETCL_OK;
  } catch (const Error& e) {
    return fake_fail(call, bootstrap.status() ? NETCL_E_PEER : NETCL_E_TIMEOUT, 0,
                     {e.message().data(), e.message().size()});
  }
}

inline netcl_host make_fake_host() {
  netcl_host h{};
  h.size = sizeof(h);
  h.abi_major = NETCL_ABI_MAJOR;
  h.abi_minor = NETCL_ABI_MINOR;
  h.log = [](netcl_call*, uint32_t, netcl_str) {};
  h.fail = &fake_fail;
  h.device_int = [](netcl_call*, netcl_device* device, netcl_str name, int64_t* value) -> netcl_rc {
    const std::string key(name.ptr, name.len);
    if (key != "is_cpu" && key != "unified_memory") return NETCL_E_ARG;
    *value = key != "is_cpu" || reinterpret_cast<TestDevice*>(device)->is_cpu ? 1 : 0;
    return NETCL_OK;
  };
  h.device_cl = [](netcl_call*, netcl_device* device, void** platform, void** id,
                   void** context) -> netcl_rc {
    auto* d = reinterpret_cast<TestDevice*>(device);
    *platform = d->platform;
    *id = d->device;
    *context = d->context;
    return NETCL_OK;
  };
  h.boot_exchange = [](netcl_call* call, netcl_boot* boot, const void* mine, uint32_t bytes,
                       void* all) {
    return fake_boot(call, boot, [&](Bootstrap& b) { b.exchange(mine, bytes, all); });
  };
  h.boot_shared = [](netcl_call* call, netcl_boot* boot, uint64_t bytes, void** memory) {
    return fake_boot(call, boot, [&](Bootstrap& b) { *memory = b.shared_memory(bytes); });
  };
  h.boot_status = [](netcl_call* call, netcl_boot* boot) -> netcl_rc {
    const auto reason = reinterpret_cast<Bootstrap*>(boot)->status();
    if (!reason) return NETCL_OK;
    return fake_fail(call, NETCL_E_PEER, 0, {reason->data(), reason->size()});
  };
  return h;
}

// How a Communicator or a TransportRank reaches a transport of this process.
inline TransportAccess access_of(plugin::Transport& transport, const std::string& name) {
  TransportAccess out;
  out.api = static_cast<const netcl_transport_api*>(transport.query(NETCL_TRANSPORT_INTERFACE));
  out.self = reinterpret_cast<netcl_plugin*>(static_cast<plugin::Plugin*>(&transport));
  out.name = name;
  out.call = [](const std::function<netcl_rc(netcl_call*)>& body) {
    netcl_call call;
    const netcl_rc rc = body(&call);
    return CallResult{rc, call.text};
  };
  return out;
}

}  // namespace netcl::testing

#endif  // NETCL_TESTS_PLUGINS_TRANSPORT_FAKE_HOST_H_
