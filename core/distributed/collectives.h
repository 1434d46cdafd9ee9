// Collectives on tensors of a group's queues, each started at once and waited for by its handle.
//
// Every function takes the tensors of all ranks, tensor r on queue r, of one data type. Ranks'
// parts may have any sizes, also none: they are those of the tensors. A collective begins when the
// work enqueued before it is done; after wait() its results are what every command enqueued from
// then on finds. Until then its tensors are not to be used. Collectives complete in the order in
// which they are started; waiting for one waits for those before it.
// Errors of all: kUsage for tensors that do not fit together (nothing was started then); kPlugin
// for what the transport does not offer; of wait(): kTraining, kDevice.
#ifndef NETCL_CORE_DISTRIBUTED_COLLECTIVES_H_
#define NETCL_CORE_DISTRIBUTED_COLLECTIVES_H_

#include <cstdint>
#include <vector>

#include "core/distributed/queue_group.h"
#include "core/tensor/tensor.h"

namespace netcl {

// A collective in flight; the group outlives it. One that is dropped completes with the next.
class CollectiveHandle {
 public:
  CollectiveHandle(QueueGroup& group, uint64_t number, bool synchronize = false)
      : group_(&group), number_(number), synchronize_(synchronize) {}
  void wait();

 private:
  QueueGroup* group_;
  uint64_t number_;
  bool synchronize_;
};

using Tensors = std::vector<Tensor>;

// Every tensor becomes the sum (mean, max, min, product) of all, element by element, in rank order.
// `weights`: of the mean, one a rank; empty: all 1.
CollectiveHandle all_reduce(QueueGroup& group, const Tensors& tensors, ReduceOp op = ReduceOp::kSum,
                            const std::vector<double>& weights = {});
// The same from `in` to `out`.
CollectiveHandle all_reduce(QueueGroup& group, const Tensors& in, const Tensors& out,
                            ReduceOp op = ReduceOp::kSum, const std::vector<double>& weights = {});
// Every tensor becomes that of the root.
CollectiveHandle broadcast(QueueGroup& group, const Tensors& tensors, uint32_t root = 0);
// `whole` on the root is cut into the parts, in rank order; part r becomes rank r's tensor.
CollectiveHandle scatter(QueueGroup& group, const Tensor& whole, const Tensors& parts,
                         uint32_t root = 0);
// The reverse: `whole` on the root becomes the parts, one behind the other.
CollectiveHandle gather(QueueGroup& group, const Tensors& parts, const Tensor& whole,
                        uint32_t root = 0);
// `whole[r]` becomes all parts, one behind the other, on every rank.
CollectiveHandle all_gather(QueueGroup& group, const Tensors& parts, const Tensors& whole);
// The tensors `whole` are reduced, and part r of the result becomes `parts[r]`.
CollectiveHandle reduce_scatter(QueueGroup& group, const Tensors& whole, const Tensors& parts,
                                ReduceOp op = ReduceOp::kSum,
                                const std::vector<double>& weights = {});
// wait() returns when all queues have done what was enqueued on any of them before.
CollectiveHandle barrier(QueueGroup& group);

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_COLLECTIVES_H_
