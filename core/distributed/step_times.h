// StepTimes: what each rank measured of a step, known to all ranks without a wait.
//
// A rank writes its record of step s before it takes part in a collective of step s+1. So once that
// collective is done, the record of step s of every rank is there: reading costs a few loads, and
// every rank reads the same numbers at the same place of its loop.
// Threads: one.
#ifndef NETCL_CORE_DISTRIBUTED_STEP_TIMES_H_
#define NETCL_CORE_DISTRIBUTED_STEP_TIMES_H_

#include <cstdint>
#include <vector>

#include "core/collective/bootstrap.h"

namespace netcl {

// One rank's part of a step.
struct StepTime {
  int64_t rows = 0;
  double busy_seconds = 0;  // until its own gradients were ready, alone
  double step_seconds = 0;  // from the end of the step before to the end of this; 0: not known
};

class StepTimes {
 public:
  // Collective. `bootstrap` outlives it.
  explicit StepTimes(Bootstrap& bootstrap);

  // After a step, with what this rank measured.
  void write(int64_t step, const StepTime& mine);
  // After a collective of step + 1, and before the next write but one: all ranks' records of
  // `step`, in rank order. Errors: kTraining when the group is stopped.
  std::vector<StepTime> read(int64_t step) const;

 private:
  struct Record;
  // A rank is at most one step ahead of another one, which may read the step before: three in use.
  static constexpr int64_t kKept = 4;
  Record& record(int64_t step, uint32_t rank) const;

  Bootstrap& bootstrap_;
  Record* records_;
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_STEP_TIMES_H_
