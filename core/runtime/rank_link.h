// RankLink: one rank's end of a group over a transport plugin: its set-up channel and communicator.
//
// Ownership: the plugin, the device and what `members` points to outlive it.
// Threads: those of Bootstrap and Communicator.
#ifndef NETCL_CORE_RUNTIME_RANK_LINK_H_
#define NETCL_CORE_RUNTIME_RANK_LINK_H_

#include <memory>
#include <vector>

#include "core/cl/device.h"
#include "core/collective/bootstrap.h"
#include "core/collective/communicator.h"
#include "core/runtime/plugin_host.h"

namespace netcl {

class RankLink {
 public:
  // `members`: of all ranks. `timeout_ns`: longest wait for a peer. Collective.
  // Errors: kPlugin where the transport cannot serve the group, with `asked` ("--transport host")
  // and its reason; kTraining, kDevice.
  RankLink(std::shared_ptr<Segment> segment, const TransportAccess& access, Device& device,
           uint32_t rank, const std::vector<netcl_member>& members, uint64_t timeout_ns,
           const std::string& asked);
  RankLink(const RankLink&) = delete;
  RankLink& operator=(const RankLink&) = delete;

  Bootstrap& bootstrap() { return bootstrap_; }
  Communicator& communicator() { return *communicator_; }

 private:
  Bootstrap bootstrap_;
  netcl_boot boot_;
  netcl_device device_;
  std::unique_ptr<Communicator> communicator_;
};

}  // namespace netcl

#endif  // NETCL_CORE_RUNTIME_RANK_LINK_H_
