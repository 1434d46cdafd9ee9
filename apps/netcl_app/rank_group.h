// RankGroup: a rank's end of a group, opened over a transport plugin.
//
// Ownership: owns bootstrap, communicator and its buckets; plugin, queue and segment outlive it.
// Threads: the queue's.
#ifndef NETCL_APPS_NETCL_APP_RANK_GROUP_H_
#define NETCL_APPS_NETCL_APP_RANK_GROUP_H_

#include <functional>
#include <memory>
#include <vector>

#include "core/collective/segment.h"
#include "core/distributed/group.h"
#include "core/runtime/rank_link.h"
#include "core/tensor/queue.h"

namespace netcl::app {

struct RankGroupSpec {
  uint32_t rank = 0, n_ranks = 1;
  uint64_t timeout_ns = 0;                  // longest wait for a peer
  size_t sum_bytes = 4;                     // the largest sum outside of the gradients' bucket
  std::function<void()> waiting = nullptr;  // see TransportAccess
  bool one_context = false;  // all ranks are in this process and have their devices in one context
};

class RankGroup {
 public:
  // Collective. Errors: kPlugin where the transport cannot serve the group, kTraining, kDevice.
  RankGroup(std::shared_ptr<Segment> segment, LoadedPlugin& plugin, std::shared_ptr<Queue> queue,
            const RankGroupSpec& spec);
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  // The bucket of the gradients, of the same size on all ranks. Once. Collective.
  const netcl_bucket& new_bucket(size_t bytes);
  // Valid as long as this object.
  Group links();

 private:
  const RankGroupSpec spec_;
  std::shared_ptr<Queue> queue_;
  std::vector<netcl_member> members_;
  std::unique_ptr<RankLink> link_;
  const netcl_bucket* bucket_ = nullptr;
  std::unique_ptr<GroupSum> sums_;
};

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_RANK_GROUP_H_
