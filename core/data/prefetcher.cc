#include "core/data/prefetcher.h"

#include <utility>

#include "core/base/error.h"

namespace netcl {

Prefetcher::Prefetcher(std::vector<BatchSlot> slots, Fill fill)
    : slots_(std::move(slots)), fill_(std::move(fill)) {
  NETCL_CHECK(!slots_.empty(), ErrorCode::kUsage, "prefetcher: no slots; expected at least one");
  thread_ = std::thread([this] { run(); });
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Prefetcher::run() {
  const int64_t ring = static_cast<int64_t>(slots_.size());
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || filled_ - released_ < ring; });
    if (stop_) return;
    BatchSlot& slot = slots_[static_cast<size_t>(filled_ % ring)];
    slot.step = filled_;
    lock.unlock();
    bool more = false;
    std::exception_ptr error;
    try {
      more = fill_(slot);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (more) {
      ++filled_;
    } else {
      error_ = error;
      done_ = true;
    }
    changed_.notify_all();
    if (done_) return;
  }
}

BatchSlot* Prefetcher::acquire() {
  const int64_t ring = static_cast<int64_t>(slots_.size());
  std::unique_lock<std::mutex> lock(mutex_);
  NETCL_CHECK(acquired_ - released_ < ring || (done_ && acquired_ == filled_), ErrorCode::kInternal,
              "prefetcher: all ", ring, " slots are held; release one before acquiring the next");
  changed_.wait(lock, [&] { return acquired_ < filled_ || done_; });
  if (acquired_ < filled_) return &slots_[static_cast<size_t>(acquired_++ % ring)];
  if (error_) std::rethrow_exception(error_);
  return nullptr;
}

void Prefetcher::release() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    NETCL_CHECK(released_ < acquired_, ErrorCode::kInternal, "prefetcher: no batch is held");
    ++released_;
  }
  changed_.notify_all();
}

}  // namespace netcl
