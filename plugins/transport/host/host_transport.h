// The `host` transport: any mix of devices on one machine, through shared host memory.
#ifndef NETCL_PLUGINS_TRANSPORT_HOST_HOST_TRANSPORT_H_
#define NETCL_PLUGINS_TRANSPORT_HOST_HOST_TRANSPORT_H_

#include <memory>
#include <string>
#include <string_view>

#include "core/abi/netcl_transport.hpp"
#include "plugins/transport/host/group.h"

namespace netcl::host_transport {

class HostTransport : public plugin::Transport {
 public:
  explicit HostTransport(const netcl_host* host, Options options = {})
      : Transport(host, NETCL_TC_CROSS_PROCESS), options_(options) {}
  std::string_view id() const override { return "host"; }
  std::string_view version() const override { return "1.0.0"; }

  void accept(const plugin::Host&, const netcl_group_spec& spec) override {
    for (uint32_t r = 1; r < spec.n_ranks; ++r) {
      if (spec.members[r].host == spec.members[0].host) continue;
      throw plugin::Decline("ranks 0 and " + std::to_string(r) +
                            " are on different machines, which share no memory");
    }
  }
  std::unique_ptr<plugin::TransportGroup> open(const plugin::Host& host,
                                               const netcl_group_spec& spec) override {
    accept(host, spec);
    return std::make_unique<HostGroup>(host, spec, options_);
  }

 private:
  Options options_;
};

}  // namespace netcl::host_transport

#endif  // NETCL_PLUGINS_TRANSPORT_HOST_HOST_TRANSPORT_H_
