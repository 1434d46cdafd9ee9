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

  // For auto: takes each rank's measured seconds per sample and plans for equal finish times.
  // Changes the weights only if every rank was measured (above 0) and the slowest one's time would
  // shrink by more than kLeastGain; returns true then. A weight changes by at most the factor
  // max_change, so that one noisy measurement cannot turn the plan over.
  bool adapt(const std::vector<double>& seconds_per_sample, double max_change);

  static constexpr double kLeastGain = 0.03;
  static constexpr double kMaxChange = 0.2;    // of a share, once the first measurement was taken
  static constexpr double kFirstChange = 1e6;  // the first measurement may change everything

 private:
  bool auto_ = false;
  std::vector<double> weights_;  // sum to 1
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_SHARD_PLAN_H_
