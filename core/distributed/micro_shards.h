// Micro-shards: the same bits on any number of ranks. A global batch is cut into a fixed number of
// micro-shards, whatever the number of ranks; each is a pass of its own on whichever rank has it.
// Their gradients and sums lie side by side in one bucket, each in its slot, are all-gathered, and
// every rank adds the slots up with one kernel, in their order. So where devices are equal, only
// the number of micro-shards says how numbers are rounded.
//
// Statistics: each micro-shard computes its next values from the same current ones; they become one
// by the slot's merge rule (weighted by rows, or the first's), in the order of the micro-shards.
// Threads: the queue's.
#ifndef NETCL_CORE_DISTRIBUTED_MICRO_SHARDS_H_
#define NETCL_CORE_DISTRIBUTED_MICRO_SHARDS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "core/data/batches.h"
#include "core/distributed/group.h"
#include "core/distributed/replica.h"

namespace netcl {

// The rows of every micro-shard of a batch of `rows`; the last ones are empty in a small batch.
std::vector<IndexRange> micro_shard_rows(int64_t rows, int64_t n);

// Those of one rank, see MicroShards; an empty one for a rank that has none.
std::vector<IndexRange> own_micro_shards(int64_t rows, const std::vector<int64_t>& of_ranks,
                                         uint32_t rank);

class MicroShards {
 public:
  // `of_ranks`: how many micro-shards each rank has, one rank's after the other's. The group's
  // bucket has room for all of them: slots_floats(). The replica's reduced gradients are its own.
  // Collective.
  MicroShards(Replica& replica, const Group& group, const std::vector<int64_t>& of_ranks);

  static int64_t slots_floats(const StepGraphs& graphs, int64_t n) {
    return n * graphs.gradients.num_floats();
  }

  // `rows` of the global batch.
  void begin(int64_t rows);
  // Enqueues this rank's micro-shard `index` over the staged rows.
  void pass(size_t index, int64_t rows, const StepRandom& random);
  // Gathers and adds up what all ranks computed, into the replica's reduced gradients and its next
  // statistics. `ready`: after all passes; null where the rank is alone. Errors: kTraining.
  void add_up(const cl::Event& ready);
  int64_t num_floats() const { return slots_.floats * n_; }

 private:
  // A slot of `floats` for each micro-shard: kernels write `send`, all of them lie in `recv`.
  struct Slots {
    int64_t floats = 0;
    const netcl_bucket* bucket = nullptr;  // null where the rank is alone
    std::shared_ptr<Storage> own;
    cl::Buffer send, recv;
  };
  Slots make_slots(int64_t floats, const netcl_bucket* bucket, const char* what);
  void keep(const cl::Buffer& from, const Slots& slots, int64_t index);
  void clear(const Slots& slots, int64_t index);
  Ticket post(const Slots& slots, const cl::Event& ready, const char* name);
  cl::Buffer memory(const std::string& name);
  void write_weights(int64_t rows);

  Replica& replica_;
  const Group group_;
  const std::vector<int64_t> of_ranks_;
  const int64_t n_;
  const IndexRange own_;
  Slots slots_, statistics_;
  std::shared_ptr<Storage> weights_;  // f32[n, statistics]: how much each next value counts
  std::shared_ptr<Storage> merged_;
  int64_t weights_rows_ = -1;  // of the batch that they are for
  std::unique_ptr<CompiledGraph> sum_, merge_;
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_MICRO_SHARDS_H_
