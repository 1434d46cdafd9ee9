// How a batch is split over the ranks: fixed weights, or weights by measured speed, which a
// ShardPlanner finds. Threads: one.
#ifndef NETCL_CORE_DISTRIBUTED_SHARD_PLAN_H_
#define NETCL_CORE_DISTRIBUTED_SHARD_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

namespace netcl {

class ShardPlan {
 public:
  // "auto", "even", or one weight a rank ("3,1"). Errors: kUsage.
  ShardPlan(const std::string& text, size_t n_ranks);

  bool is_auto() const { return auto_; }
  const std::vector<double>& weights() const { return weights_; }
  // Samples of each rank in a batch; they sum to `batch`.
  std::vector<int64_t> counts(int64_t batch) const;

  // For auto: other weights, one a rank, which need not sum to 1 (a plan that was saved, or one by
  // measured speed). Errors: kInternal for a plan that is fixed, or weights that are none.
  void set_weights(std::vector<double> weights);
  // Keeps the plan as it is: auto no longer measures (reproducible runs).
  void fix() { auto_ = false; }

 private:
  bool auto_ = false;
  std::vector<double> weights_;  // sum to 1
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_SHARD_PLAN_H_
