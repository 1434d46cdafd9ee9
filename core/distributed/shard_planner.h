// ShardPlanner: shares of a batch by measured speed. It sees what all ranks measured of every step,
// fits each rank's cost, and says when the shares should change and to what.
//
// Every rank has one and feeds it the same numbers, so every rank decides the same at the same
// step. It measures nothing itself and knows no device. How it goes on:
//   first     a few steps with the plan it began with; then the first plan by measured speed
//   settling  a few steps with that plan: other rows, so the fixed cost can be told; then a better
//   steady    a change by at most a fifth of a share, where a window of steps shows a gain
//   trial     a few steps without a rank that adds little; it stays out if they are shorter
// A rank whose steps take much longer or shorter than its fit says has changed its speed: its fit
// is scaled, and a new first plan follows at once.
// Threads: one.
#ifndef NETCL_CORE_DISTRIBUTED_SHARD_PLANNER_H_
#define NETCL_CORE_DISTRIBUTED_SHARD_PLANNER_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "core/distributed/cost_fit.h"
#include "core/distributed/finish_time.h"
#include "core/distributed/group_choice.h"
#include "core/distributed/shard_account.h"
#include "core/distributed/shard_plan.h"
#include "core/distributed/step_times.h"

namespace netcl {

struct ShardPlannerOptions {
  int64_t batch_size = 1;          // of a full batch
  int64_t passes = 1;              // of a step; limits and multiples are those of a pass
  std::vector<std::string> names;  // of the ranks, for what it says
  std::vector<RankLimits> limits;  // one a rank
};

class ShardPlanner {
 public:
  struct Change {
    std::vector<double> weights;  // empty: the plan stays
    std::string note;             // why, for people; or ""
  };

  // `plan` to begin with. One that is fixed is only measured, for the account; one that is not may
  // be changed at once, where it gives a rank more than it holds.
  // Errors: kDevice if a batch does not fit into all ranks together.
  ShardPlanner(ShardPlannerOptions options, ShardPlan& plan);

  // Takes the records of a step, one a rank, which come one step late: those of step s when step
  // s + 1 is done. A change must be followed, from step s + 2 on.
  std::optional<Change> observe(const std::vector<StepTime>& times);

  // For the choice of the group. A rank that is alone is measured, too.
  GroupMeasure measure() const;
  ShardAccount account() const;
  const std::string& name(size_t rank) const { return options_.names[rank]; }
  // Rows of each rank in a full pass, as planned.
  const std::vector<int64_t>& rows() const { return rows_; }

  static constexpr double kLeastGain = 0.03;    // of a step's time, or no change
  static constexpr double kTrialGain = 0.01;    // of a step's time, measured without a rank
  static constexpr double kMaxChange = 0.2;     // of a share, in a steady run
  static constexpr double kNewSpeed = 1.25;     // measured by fitted time: the speed has changed
  static constexpr double kWorthKeeping = 1.1;  // time without a rank by time with it: no trial
  static constexpr double kGainByNoise = 3;     // a steady change must gain this by its noise
  static constexpr int64_t kWindow = 50;        // steps between steady changes

 private:
  enum class Stage { kFirst, kSettling, kSteady, kTrial };
  struct Trial {
    std::vector<bool> without;  // the ranks it leaves out
    std::vector<int64_t> rows;  // with them
    double seconds = 0;         // of a step with them
  };

  int64_t enough(int64_t least) const;
  std::vector<RankCost> costs() const;
  std::vector<RankCost> costs_without(const std::vector<bool>& ranks) const;
  void take(const std::vector<StepTime>& times);
  std::optional<Change> new_plan();
  std::optional<Change> steady_plan();
  std::optional<Change> begin_trial(const std::vector<bool>& without,
                                    const std::vector<int64_t>& rows);
  std::optional<Change> try_without_one();
  std::optional<Change> end_trial();
  bool speed_changed();
  Change change_to(std::vector<int64_t> rows, Stage stage);
  void begin(Stage stage);
  bool is_full(const std::vector<StepTime>& times) const;

  const ShardPlannerOptions options_;
  const size_t n_;
  const int64_t pass_size_;  // of the first pass over a full batch
  bool adapts_;
  std::vector<int64_t> rows_;  // of each rank in such a pass
  std::vector<CostFit> fits_;
  std::vector<bool> left_out_, tried_;
  bool all_tried_ = false;  // who is worth a trial, since the last change of speed
  std::vector<double> seconds_without_, seconds_with_;  // measured, of ranks that were tried
  Stage stage_ = Stage::kFirst;
  Trial trial_;
  int64_t skip_ = 1;      // records: the first step of a plan, and what was under way
  int64_t count_ = 0;     // full steps seen with this plan
  int64_t settled_ = 0;   // how often, since the last change of speed
  int64_t patience_ = 1;  // grows while speeds change all the time
  int64_t calm_ = 0;      // steps since the last change of speed
  std::deque<double> step_seconds_, exposed_;  // of full steps with this plan
  struct {
    double step_seconds = 0, exposed = 0;
  } before_;                                // medians of the plan before; 0: not measured
  std::vector<std::deque<double>> ratios_;  // measured by fitted, of the last steps
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_SHARD_PLANNER_H_
