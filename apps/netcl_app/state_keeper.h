// StateKeeper: a rank's part in the snapshots of a run, and when they are due.
//
// Rank 0 measures what a snapshot costs and announces the step after which all ranks write the next
// one, so that they take at most a fiftieth of the time, and at most one is written a second. The
// comparison of parameters goes by the same rule with a hundredth.
// Ownership: segment, replica and job outlive it. Threads: the queue's.
#ifndef NETCL_APPS_NETCL_APP_STATE_KEEPER_H_
#define NETCL_APPS_NETCL_APP_STATE_KEEPER_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "apps/netcl_app/job.h"
#include "core/collective/segment.h"
#include "core/distributed/replica.h"
#include "core/distributed/snapshot.h"
#include "core/distributed/trainer_progress.h"

namespace netcl::app {

Json to_json(const Plateau& plateau);
Plateau plateau_from_json(const Json& json);

// What a snapshot holds beside the replica's arenas.
struct KeptState {
  TrainerProgress progress;
  double best = 0;     // the score of the best checkpoint
  bool wrote = false;  // read: this worker was in the group; else the account is not its own
};

// The steps after which all ranks do something that rank 0 finds due.
class Rhythm {
 public:
  // `share`: of the time that it may take; `least_seconds`, `least_steps`: between two of them.
  Rhythm(Segment& segment, const Job& job, Due what, double share, double least_seconds,
         int64_t least_steps);
  // Between two steps, on every rank.
  bool due(int64_t step);
  void done(int64_t step, double seconds);

 private:
  Segment& segment_;
  const uint32_t rank_;
  const Due what_;
  const double share_, least_seconds_;
  const int64_t least_steps_;
  double next_seconds_;
  int64_t next_step_ = 0;
};

class StateKeeper {
 public:
  // Memory for the snapshots is taken here where they are due from time to time, else by the first
  // one. Errors: kTraining if it is short.
  StateKeeper(Snapshots& snapshots, const Job& job, Segment& segment, Replica& replica);

  // What lies in the slot of job.snapshot, and the same into the replica.
  KeptState read() const;
  void load() const;

  // Between two steps, on every rank: whether all of them take a snapshot here.
  bool due(int64_t step);
  // `half`: called when everything is written and nothing is marked.
  void take(const KeptState& state, const std::function<void()>& half);

 private:
  void reserve();
  std::vector<uint32_t> writers() const;
  std::vector<float> merged_statistics(uint32_t slot, const std::vector<uint32_t>& places) const;

  Snapshots& snapshots_;
  const Job& job_;
  Replica& replica_;
  Rhythm rhythm_;
  uint32_t next_slot_;
  bool reserved_ = false;
  bool first_;  // the state at the first step is not kept yet
  double begun_ = 0;
};

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_STATE_KEEPER_H_
