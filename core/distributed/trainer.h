// Trainer: the training loop of one rank. All ranks run the same loop in step: each works on its
// shard of every global batch, gradients and sums are added up over the ranks, and every rank makes
// the same update.
//
// Threads: the queue's; a prefetcher fills batches on its own thread.
#ifndef NETCL_CORE_DISTRIBUTED_TRAINER_H_
#define NETCL_CORE_DISTRIBUTED_TRAINER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/cl/pinned.h"
#include "core/data/batches.h"
#include "core/data/dataset.h"
#include "core/data/prefetcher.h"
#include "core/distributed/evaluator.h"
#include "core/distributed/exchange.h"
#include "core/distributed/group.h"
#include "core/distributed/group_choice.h"
#include "core/distributed/replica.h"
#include "core/distributed/shard_plan.h"
#include "core/distributed/shard_planner.h"
#include "core/distributed/step_times.h"
#include "core/distributed/sums.h"
#include "core/distributed/trainer_options.h"
#include "core/distributed/trainer_progress.h"

namespace netcl {

class Trainer {
 public:
  Trainer(TrainerOptions options, Replica& replica, Group group, ShardPlan plan,
          const Dataset& train, const Dataset* test, TrainerHooks hooks);

  // Prepares all kernels that training and evaluation need, and launches each once. The replica's
  // parameters and state stay as they are.
  void prepare();
  // Runs until the end. Errors: kTraining for a loss that is no number (names the step), gradients
  // that are none (with a scaled loss: in many steps on end), or a lost peer; kDevice.
  StopReason run();
  // Sums over the whole data set, each sample once; nothing if a stop was requested on any rank.
  // Collective.
  std::optional<Sums> evaluate(const Dataset& data);

  RankAccount account() const;
  // Waits for the steps that are under way. Inside of hooks.boundary, or after kRegroup.
  TrainerProgress progress();
  ShardAccount shard_account() const;
  const std::vector<double>& shares() const { return plan_.weights(); }
  int64_t steps_done() const { return step_; }
  int64_t first_pass_rows() const;  // this rank's samples in the first pass over a full batch

 private:
  struct Pending {
    int64_t epoch, step;
    cl::Event done;
    size_t slot;  // of sums_ring_
    double seconds;
  };
  // Steps [first, last) of an epoch, or fewer if the plan changes; false if the run must stop.
  bool run_steps(int64_t epoch, int64_t first, int64_t last);
  // One step; true if the next one has another plan.
  bool train_step(int64_t epoch, int64_t index, BatchSlot& batch);
  // Tells the planner what the ranks measured; as train_step. Collective, without a wait.
  bool replan(const StepTime& mine);
  bool regroup();  // whether a group must be formed anew
  void say(const std::string& text) const;
  // The passes of a step; the event after which the batch's memory is free.
  cl::Event passes(const BatchSlot& batch, const std::vector<IndexRange>& shards);
  // This rank's part of every pass over a batch of `rows`.
  std::vector<IndexRange> pass_shards(int64_t rows) const;
  BatchSlot& next_batch(Prefetcher& prefetcher) const;
  void prepare_kernels(int64_t batch_size);
  int64_t pass_rows() const;  // at most
  double learning_rate(int64_t step) const;
  void end_plateau_epoch(const EpochReport& report);
  void begin_epoch(bool first_step);
  void boundary(bool epoch_end) const;
  float* sums_of(size_t slot) const;
  void drain(size_t keep);
  void take_norm(const Pending& step, double norm);
  bool must_stop();
  Evaluator::Hooks evaluator_hooks() const;
  void phase(TrainerPhase now) const;
  void point(const char* name, int64_t rows) const;
  [[noreturn]] void no_number(const Pending& at, const char* what, double value);
  std::vector<BatchSlot> slots() const;
  std::vector<int64_t> batch_sizes()
      const;  // of an epoch: the full one, and the last if it differs

  static constexpr size_t kSlots = 3;     // staged batches
  static constexpr size_t kInFlight = 4;  // steps whose sums have not come back
  // Skipped steps on end: enough to halve the largest loss scale to the least one, and some more.
  static constexpr int64_t kMostSkipped = 32;

  const TrainerOptions options_;
  Replica& replica_;
  const Group group_;
  ShardPlan plan_;
  const Dataset& train_;
  const Dataset* test_;
  TrainerHooks hooks_;
  BatchPlan batches_;
  int64_t max_rows_;
  const std::vector<int64_t> micro_shards_;  // of each rank; empty: see TrainerOptions
  const bool sums_inside_;                   // the ranks add something up in the middle of a step
  Exchange exchange_;
  Evaluator evaluator_;
  std::vector<std::unique_ptr<PinnedBuffer>> staging_;
  std::unique_ptr<PinnedBuffer> sums_ring_;
  std::deque<Pending> pending_;
  std::deque<cl::Event> staged_;
  Sums epoch_sums_;
  Sums carried_;  // of the first epoch's steps before this run
  Plateau plateau_;
  double norm_sum_ = 0;  // of the epoch's steps, as the next
  int64_t norm_steps_ = 0, skipped_ = 0, skipped_in_a_row_ = 0;
  int64_t epoch_started_ = 0;
  double epoch_begin_ = 0;  // seconds
  bool resumed_ = false;    // the epoch's numbers are those of options_.progress
  RankAccount account_;
  int64_t step_ = 0;
  ShardPlanner planner_;
  std::optional<StepTimes> times_;  // of a group
  GroupChoice group_choice_;
  std::optional<GroupChoice::Regroup> regroup_;  // wanted; the loop ends before the next step
  double step_end_ = 0;                          // of the last step
  bool step_end_near_ = false;                   // nothing but steps since then
  double samples_since_merge_ = 0;               // this rank's
  int64_t stop_at_ = -1;
  double last_loss_ = std::numeric_limits<double>::quiet_NaN();  // the last finite one
  StopReason reason_ = StopReason::kFinished;
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_TRAINER_H_
