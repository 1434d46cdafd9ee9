// Where a training loop is between two steps.
#ifndef NETCL_CORE_DISTRIBUTED_TRAINER_PROGRESS_H_
#define NETCL_CORE_DISTRIBUTED_TRAINER_PROGRESS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/distributed/group_choice.h"
#include "core/distributed/sums.h"
#include "core/optim/schedule.h"

namespace netcl {

struct RankAccount {
  int64_t samples = 0;      // this rank's
  double seconds = 0;       // training time of the run
  double busy_seconds = 0;  // of which the device computed
  double share = 0;         // weight at the end
};

// Where the loop is between two steps: with parameters, statistics and optimiser state everything
// that it needs to go on as if nothing had happened.
struct TrainerProgress {
  int64_t step = 0;
  // Of the epoch in which `step` lies, the same on all ranks.
  int64_t epoch_started = 0;  // the step after which this run began it
  Sums sums, carried;
  double norm_sum = 0;
  int64_t norm_steps = 0, skipped = 0, skipped_in_a_row = 0;
  double seconds = 0;
  Plateau plateau;
  std::map<std::string, double> shares;  // of the ranks of the group to go on with, by name
  std::vector<Departure> departures;
  // This rank's.
  double samples_since_merge = 0;
  RankAccount account;
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_TRAINER_PROGRESS_H_
