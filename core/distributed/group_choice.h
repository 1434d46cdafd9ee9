// GroupChoice: which ranks a run keeps in its group at all.
//
// A rank without rows still takes part in every sum, and can so hold the others up. Where the fits
// say that a step is shorter without a rank, and the run is long enough for what it costs to form a
// group anew, the run goes on without it; some steps later what was measured with and without it
// decides whether it stays away or comes back. Every rank has one and feeds it the same numbers, so
// every rank decides the same after the same step.
// Threads: one.
#ifndef NETCL_CORE_DISTRIBUTED_GROUP_CHOICE_H_
#define NETCL_CORE_DISTRIBUTED_GROUP_CHOICE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/distributed/finish_time.h"
#include "core/distributed/shard_account.h"

namespace netcl {

// A rank that the run went on without.
struct Departure {
  enum class State { kOnTrial, kAway, kBack };
  std::string name;
  State state = State::kOnTrial;
  double solo_samples_per_second = 0;  // by its fit
  double seconds_with = 0;             // of a step, measured
  double seconds_without = 0;          // 0: not measured yet
};

// What a planner knows of the present group.
struct GroupMeasure {
  bool settled = false;  // the shares are not about to change, and there are steps enough
  double step_seconds = 0;
  double exposed_seconds = 0;  // of it: sums and waiting
  int64_t batch_size = 0, pass_size = 0;
  std::vector<std::string> names;  // of the ranks, like the next two
  std::vector<RankCost> costs;     // by rows of a pass
  std::vector<int64_t> rows;       // of a pass
};

class GroupChoice {
 public:
  // The group to go on with, by names, and the shares of its ranks.
  struct Regroup {
    std::map<std::string, double> shares;
    std::string note;
  };

  // `departures`: of the run so far. One that is among `present`, the names of the group's ranks,
  // is back, however that came about.
  GroupChoice(std::vector<Departure> departures, const std::vector<std::string>& present);

  // Between two steps; `steps_left`: that the run still makes. A group must be formed anew if it
  // returns one. `note`: what else is to be said.
  std::optional<Regroup> look(const GroupMeasure& now, int64_t steps_left, std::string* note);

  const std::vector<Departure>& departures() const { return departures_; }
  // Adds those that are away to an account of the present group.
  void complete(ShardAccount& account) const;

  static constexpr double kLeastGain = 0.03;    // of a step
  static constexpr double kLeastSaved = 1;      // seconds of the rest of the run
  static constexpr double kNoise = 0.02;        // of a step, for a trial
  static constexpr size_t kMostDepartures = 2;  // of a rank in a run
  static constexpr double kLargePart = 0.25;    // of a step, that sums and waiting take
  static constexpr double kWorthALook = 60;     // seconds of the rest, where no fit can tell

 private:
  std::optional<Regroup> end_trial(Departure& trial, const GroupMeasure& now, std::string* note);
  // The seconds of a step without it, of each time that it left.
  std::vector<double> measured_without(const std::string& name) const;

  std::vector<Departure> departures_;
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_GROUP_CHOICE_H_
