// Exchange: how the replicas' gradients of a step become one update of the parameters.
//   replicated  the gradient arena is all-reduced in buckets, each as soon as backward has yielded
//               it, and every rank makes the whole update
//   sharded     (the replica shares the update) sums are all-reduced and gradients
//               reduce-scattered; each rank updates its share of the parameters with its share of
//               the optimiser's states, and the parameters are all-gathered: the same bits on every
//               rank, also where devices round differently
//   ordered     (with micro_shards) the same bits on any number of ranks, see micro_shards.h
//
// Commit rule: nothing of a step changes what is kept (parameters, statistics, optimiser state)
// before all ranks have reduced it, so a step that fails can be dropped and repeated.
// Threads: the queue's.
#ifndef NETCL_CORE_DISTRIBUTED_EXCHANGE_H_
#define NETCL_CORE_DISTRIBUTED_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/distributed/buckets.h"
#include "core/distributed/group.h"
#include "core/distributed/micro_shards.h"
#include "core/distributed/replica.h"

namespace netcl {

struct ExchangeOptions {
  BucketSizes buckets;
  std::vector<int64_t> micro_shards;  // of each rank; empty: gradients are added up by rank
};

class Exchange {
 public:
  // Collective.
  Exchange(Replica& replica, Group group, const ExchangeOptions& options);

  // Before anything of the step is enqueued. `step` counts from 1; `rows`: of the global batch.
  void begin(int64_t step, int64_t rows);
  // Enqueues one of the step's passes (a micro-shard, where there are such) over the staged rows.
  void pass(size_t index, int64_t rows, const StepRandom& random);
  // After all passes of the step are enqueued: adds gradients and sums up over the ranks and
  // updates. Returns the seconds from begin() until this rank's own gradients were ready; 0 for a
  // replica that is alone, which waits for nothing. Errors: kTraining for a lost or late peer.
  double finish(double lr);

  // Of a shared update: makes the average whole where evaluation uses it and, on rank 0, all states
  // for a checkpoint (Replica::read_state). Collective.
  void gather_states();

 private:
  void post(size_t bucket);
  Ticket post_sharded(const GradientBucket& bucket, void* ready, bool overlapped);
  void gather(const char* name);
  void note(uint32_t op, int64_t count, const std::string& name) const;

  Replica& replica_;
  const Group group_;
  std::vector<GradientBucket> buckets_;
  std::vector<FloatRange> shares_;  // of every rank, where the update is sharded
  std::unique_ptr<MicroShards> micro_;
  bool overlaps_ = false;      // buckets are posted while backward goes on
  cl::Event ready_;            // of what was posted last, like the next
  Ticket last_, before_last_;  // of this step
  int64_t step_ = 0;
  double begin_seconds_ = 0;
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_EXCHANGE_H_
