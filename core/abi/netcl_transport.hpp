// netcl_transport.hpp - C++17 veneer over the interface of reduction transports, for plugin
// authors.
//
// Derive from Transport and TransportGroup, and write NETCL_PLUGIN(MyTransport) once. The members
// throw Failure and Decline, as everywhere in netcl_plugin.hpp.
#ifndef NETCL_CORE_ABI_NETCL_TRANSPORT_HPP_
#define NETCL_CORE_ABI_NETCL_TRANSPORT_HPP_

#include <cstdint>
#include <memory>
#include <string_view>

#include "netcl_plugin.hpp"

#pragma GCC visibility push(hidden)
namespace netcl {
namespace plugin {

// One rank's end of a group. The members have the contracts of netcl_transport_api; they throw
// Failure. The destructor closes the group.
class TransportGroup {
 public:
  virtual ~TransportGroup() = default;
  virtual void bucket_new(const Host& host, uint64_t bytes, netcl_bucket* out) = 0;
  virtual void bucket_free(netcl_bucket* bucket) noexcept = 0;
  virtual uint64_t post(const Host& host, const netcl_coll& collective) = 0;
  virtual void wait(const Host& host, uint64_t ticket) = 0;
  virtual void abort(std::string_view reason) noexcept = 0;
};

// A plugin that offers a transport.
class Transport : public Plugin {
 public:
  // `caps`: NETCL_TC_*.
  Transport(const netcl_host* host, uint32_t caps) : Plugin(host) {
    api_.size = sizeof(api_);
    api_.caps = caps;
    api_.accept = [](netcl_plugin* p, netcl_call* call, const netcl_group_spec* spec) {
      return guard(of(p).host(), call, [&] { of(p).accept(Host(of(p).host(), call), *spec); });
    };
    api_.open = [](netcl_plugin* p, netcl_call* call, const netcl_group_spec* spec, void** group) {
      return guard(of(p).host(), call,
                   [&] { *group = of(p).open(Host(of(p).host(), call), *spec).release(); });
    };
    api_.bucket_new = [](netcl_plugin* p, netcl_call* call, void* group, uint64_t bytes,
                         netcl_bucket* out) {
      return guard(of(p).host(), call,
                   [&] { as_group(group).bucket_new(Host(of(p).host(), call), bytes, out); });
    };
    api_.bucket_free = [](netcl_plugin*, void* group, netcl_bucket* bucket) {
      as_group(group).bucket_free(bucket);
    };
    api_.post = [](netcl_plugin* p, netcl_call* call, void* group, const netcl_coll* collective,
                   uint64_t* ticket) {
      return guard(of(p).host(), call,
                   [&] { *ticket = as_group(group).post(Host(of(p).host(), call), *collective); });
    };
    api_.wait = [](netcl_plugin* p, netcl_call* call, void* group, uint64_t ticket) {
      return guard(of(p).host(), call,
                   [&] { as_group(group).wait(Host(of(p).host(), call), ticket); });
    };
    api_.abort = [](netcl_plugin*, void* group, netcl_str reason) {
      as_group(group).abort(view(reason));
    };
    api_.close = [](netcl_plugin*, void* group) { delete &as_group(group); };
  }
  // Throws Decline with the first pair of ranks that cannot be served.
  virtual void accept(const Host& host, const netcl_group_spec& spec) = 0;
  virtual std::unique_ptr<TransportGroup> open(const Host& host, const netcl_group_spec& spec) = 0;
  const void* query(std::string_view interface_name) override {
    return interface_name == NETCL_TRANSPORT_INTERFACE ? &api_ : nullptr;
  }

 private:
  static Transport& of(netcl_plugin* p) { return static_cast<Transport&>(self(p)); }
  static TransportGroup& as_group(void* group) { return *static_cast<TransportGroup*>(group); }
  netcl_transport_api api_{};
};

}  // namespace plugin
}  // namespace netcl
#pragma GCC visibility pop

#endif  // NETCL_CORE_ABI_NETCL_TRANSPORT_HPP_
