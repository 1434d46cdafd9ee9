// The `p2p` transport: replicas of one process whose devices share an OpenCL context read each
// other's buckets with kernels; nothing passes through the host.
#ifndef NETCL_PLUGINS_TRANSPORT_P2P_P2P_TRANSPORT_H_
#define NETCL_PLUGINS_TRANSPORT_P2P_P2P_TRANSPORT_H_

#include <memory>
#include <string>
#include <string_view>

#include "core/abi/netcl_transport.hpp"
#include "plugins/transport/p2p/group.h"

namespace netcl::p2p_transport {

class P2pTransport : public plugin::Transport {
 public:
  // `kernels`: the directory of the .cl files; empty: the plugin's own.
  explicit P2pTransport(const netcl_host* host, std::string kernels = "")
      : Transport(host, 0), kernels_(std::move(kernels)) {}
  std::string_view id() const override { return "p2p"; }
  std::string_view version() const override { return "1.0.0"; }

  void accept(const plugin::Host&, const netcl_group_spec& spec) override {
    const auto refuse = [](uint32_t rank, const char* why) {
      throw plugin::Decline("ranks 0 and " + std::to_string(rank) + " " + why);
    };
    for (uint32_t r = 1; r < spec.n_ranks; ++r) {
      const netcl_member &first = spec.members[0], &other = spec.members[r];
      if (other.host != first.host) refuse(r, "are on different machines");
      if (other.process != first.process) {
        refuse(r, "are in different processes; p2p needs replicas of one process");
      }
      if (other.context != first.context) {
        refuse(r, "have different OpenCL contexts; p2p needs devices of one platform in one");
      }
    }
    if (spec.n_ranks > transport::kMaxReducedRanks) {
      throw plugin::Decline(std::to_string(spec.n_ranks) + " ranks; p2p serves at most " +
                            std::to_string(transport::kMaxReducedRanks));
    }
  }
  std::unique_ptr<plugin::TransportGroup> open(const plugin::Host& host,
                                               const netcl_group_spec& spec) override {
    accept(host, spec);
    return std::make_unique<P2pGroup>(host, spec, kernels_.empty() ? host.plugin_dir() : kernels_);
  }

 private:
  std::string kernels_;
};

}  // namespace netcl::p2p_transport

#endif  // NETCL_PLUGINS_TRANSPORT_P2P_P2P_TRANSPORT_H_
