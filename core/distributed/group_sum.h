// GroupSum: sums over the ranks of a group outside of the gradients' bucket: those in the middle of
// a graph (synchronised batch normalisation), and of small host arrays (merged statistics).
//
// Ownership: has a bucket of the communicator, which outlives it, like the queue.
// Threads: the queue's.
#ifndef NETCL_CORE_DISTRIBUTED_GROUP_SUM_H_
#define NETCL_CORE_DISTRIBUTED_GROUP_SUM_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/collective/communicator.h"
#include "core/tensor/queue.h"

namespace netcl {

class GroupSum {
 public:
  // Collective: every rank makes one, for the same number of bytes (at least 4).
  GroupSum(Communicator& communicator, Queue& queue, uint64_t bytes);

  // out = sum of `in` over the ranks, in the order of the queue; returns when the sum is there.
  // Collective. Errors: kTraining for a lost or late peer, kDevice.
  void add_up(const cl::Buffer& in, const cl::Buffer& out, const TensorDesc& desc,
              std::string_view name);
  // The same of host values. Collective, with the same size on every rank.
  std::vector<float> add_up(const std::vector<float>& mine, std::string_view name);

 private:
  void reduce(uint64_t count, std::string_view name);

  Communicator& communicator_;
  Queue& queue_;
  const netcl_bucket& bucket_;
  cl::Buffer send_, recv_;
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_GROUP_SUM_H_
