// Fills batches ahead of their use: one background thread and a ring of the caller's slots.
//
// The caller owns the slots' memory (pinned, shared or plain) and keeps it alive until the
// prefetcher is gone. Threads: `fill` runs on the background thread; acquire and release belong to
// one consumer.
#ifndef NETCL_CORE_DATA_PREFETCHER_H_
#define NETCL_CORE_DATA_PREFETCHER_H_

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace netcl {

struct BatchSlot {
  void* x = nullptr;
  void* labels = nullptr;
  int64_t count = 0;  // samples in it, set by the fill function
  int64_t step = 0;   // running number of the batch, from 0, set by the prefetcher
};

class Prefetcher {
 public:
  // Fills one slot with the batch of slot.step; returns false when there are no more batches.
  using Fill = std::function<bool(BatchSlot& slot)>;

  // Starts filling. Errors: kUsage for no slots.
  Prefetcher(std::vector<BatchSlot> slots, Fill fill);
  // Stops after the slot being filled; never throws.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Waits for the next batch, in order; nullptr after the last one. Several may be held at once, up
  // to the number of slots. Errors: rethrows what `fill` threw, once the batches before it have
  // been handed out; kInternal when every slot is held already.
  BatchSlot* acquire();
  // Gives back the batch acquired longest ago. Errors: kInternal when none is held.
  void release();

 private:
  void run();

  std::vector<BatchSlot> slots_;
  Fill fill_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t filled_ = 0;    // batches filled so far
  int64_t acquired_ = 0;  // of these, handed out
  int64_t released_ = 0;  // of these, given back
  bool done_ = false;     // no more batches, or failed
  bool stop_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace netcl

#endif  // NETCL_CORE_DATA_PREFETCHER_H_
