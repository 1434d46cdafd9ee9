#include "core/distributed/step_times.h"

#include <atomic>
#include <thread>

#include "core/base/error.h"

namespace netcl {

struct alignas(64) StepTimes::Record {
  std::atomic<int64_t> step;  // whose record it is; 0: none
  StepTime time;
};

StepTimes::StepTimes(Bootstrap& bootstrap) : bootstrap_(bootstrap) {
  static_assert(std::atomic<int64_t>::is_always_lock_free, "shared between processes");
  records_ = static_cast<Record*>(
      bootstrap.shared_memory(sizeof(Record) * kKept * bootstrap.n_ranks()));  // zeroed
}

StepTimes::Record& StepTimes::record(int64_t step, uint32_t rank) const {
  return records_[(step % kKept) * bootstrap_.n_ranks() + rank];
}

void StepTimes::write(int64_t step, const StepTime& mine) {
  Record& own = record(step, bootstrap_.rank());
  own.time = mine;
  own.step.store(step, std::memory_order_release);
}

std::vector<StepTime> StepTimes::read(int64_t step) const {
  std::vector<StepTime> out;
  for (uint32_t rank = 0; rank < bootstrap_.n_ranks(); ++rank) {
    const Record& theirs = record(step, rank);
    // It is there already, unless a transport tells one rank of the end before another began.
    while (theirs.step.load(std::memory_order_acquire) < step) {
      if (const auto reason = bootstrap_.status()) fail(ErrorCode::kTraining, *reason);
      std::this_thread::yield();
    }
    out.push_back(theirs.time);
  }
  return out;
}

}  // namespace netcl
