// What a training loop is told, what it reports, and what it asks.
#ifndef NETCL_CORE_DISTRIBUTED_TRAINER_OPTIONS_H_
#define NETCL_CORE_DISTRIBUTED_TRAINER_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/distributed/buckets.h"
#include "core/distributed/finish_time.h"
#include "core/distributed/sums.h"
#include "core/distributed/trainer_progress.h"
#include "core/optim/schedule.h"

namespace netcl {

struct TrainerOptions {
  Schedule schedule;
  double lr = 0;
  int64_t batch_size = 1;
  int64_t epochs = 1;
  int64_t max_steps = 0;   // 0: no limit. Does not change the schedule
  int64_t first_step = 0;  // steps already done (resume)
  uint64_t seed = 0;
  int64_t accumulate = 1;  // passes of every rank before a step
  BucketSizes buckets = {};
  int64_t micro_shards = 0;  // above 0: see micro_shards.h; then accumulate is 1
  Plateau plateau = {};      // of a plateau schedule (resume)
  Sums epoch_so_far = {};    // of the epoch in which first_step lies (resume)
  // Go on from here, in place of the three above; the run's reports show no seam.
  std::optional<TrainerProgress> progress = std::nullopt;
  // Of the ranks, for shares by measured speed; without, the devices hold and like everything.
  std::vector<std::string> rank_names = {};
  std::vector<RankLimits> rank_limits = {};
  // The run may form its group anew without a rank that holds the others up (group_choice.h): then
  // run() ends with kRegroup. Only where the shares are free.
  bool may_regroup = false;
};

struct StepReport {
  int64_t epoch = 0, step = 0;  // epoch from 0; step from 1 over the whole run
  double loss = 0;              // of the global batch
  double seconds = 0;           // since the end of the step before, or the begin of the epoch
};

struct EpochReport {
  int64_t epoch = 0, step = 0;
  int64_t first_step = 0;  // the epoch's first step of this run
  bool complete = false;   // false when the run stopped inside the epoch
  double lr = 0;
  double seconds = 0;   // of training, without evaluation
  int64_t samples = 0;  // of all ranks
  Sums train;           // as trained
  Sums whole;           // the same with the steps of the epoch that another run did before it
  std::optional<double> grad_norm;  // mean over the steps, where it is measured
  int64_t skipped = 0;              // steps without an update: gradients overflowed (fp16)
  Plateau plateau;
  std::optional<Sums> test;
  std::vector<double> shares;  // of the ranks, from here on
};

enum class TrainerPhase { kPreparing, kTraining, kEvaluating };

// What the loop tells and asks. Absent functions are skipped.
struct TrainerHooks {
  std::function<void(const StepReport&)> step;
  std::function<void(const EpochReport&)> epoch;
  std::function<void(const std::string&)> note;  // a line worth logging
  // True if the user asked to stop; ranks agree on the step at which they do.
  std::function<bool()> stop_requested;
  // Called when the rank begins something else, and again as long as it gets on with it.
  std::function<void(TrainerPhase)> phase;
  // Named points of a step, for tests of faults: "begin", "computed" (everything of the step is
  // enqueued, nothing is kept), "updated"; and "evaluate". `rows`: of this rank.
  std::function<void(const char* point, int64_t step, int64_t rows)> point;
  // Between steps, and at an epoch's end before the merge, on all ranks. May call progress().
  std::function<void(int64_t step, bool epoch_end)> boundary;
};

// kRegroup: between two steps; progress() says with which group to go on.
enum class StopReason { kFinished, kMaxSteps, kInterrupted, kRegroup };

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_TRAINER_OPTIONS_H_
