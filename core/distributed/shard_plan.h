// How a batch is split over the ranks: fixed weights, or weights by measured speed.
//
// Every rank computes the same plan from the same exchanged measurements. Threads: one.
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

  // For auto: takes each rank's measured seconds per sample (0: not measured; the rank keeps its
  // weight) and plans for equal finish times. Changes the weights only if the slowest rank's time
  // shrinks by more than kLeastGain; returns true then.
  bool adapt(const std::vector<double>& seconds_per_sample);

  static constexpr double kLeastGain = 0.03;

 private:
  bool auto_ = false;
  std::vector<double> weights_;  // sum to 1
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_SHARD_PLAN_H_
