#include "plugins/kernels/openblas/crew.h"

namespace netcl::openblas {

Crew::~Crew() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
  }
  wake_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void Crew::start() {
  std::call_once(started_, [&] {
    for (size_t i = 0; i < num_helpers_; ++i) helpers_.emplace_back([this, i] { help(i); });
  });
}

void Crew::run(size_t pieces, const std::function<void(size_t)>& piece) {
  Work work{piece, pieces};
  bool mine = pieces > 1 && num_helpers_ > 0;
  if (mine) {
    const std::lock_guard<std::mutex> lock(mutex_);
    mine = work_ == nullptr;
    if (mine) {
      work_ = &work;
      ++works_;
    }
  }
  if (mine) {
    wake_.notify_all();
  } else {
    alone_.fetch_add(1);
  }
  for (size_t i = work.next++; i < pieces; i = work.next++) piece(i);
  if (!mine) {
    alone_.fetch_sub(1);
    return;
  }
  std::unique_lock<std::mutex> lock(mutex_);
  work_ = nullptr;
  left_.wait(lock, [&] { return work.inside == 0; });
}

void Crew::help(size_t number) {
  uint64_t seen = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return ended_ || (work_ != nullptr && works_ != seen); });
    if (ended_) return;
    seen = works_;
    Work& work = *work_;
    ++work.inside;
    lock.unlock();
    while (number + alone_.load() < num_helpers_) {
      const size_t i = work.next++;
      if (i >= work.pieces) break;
      work.piece(i);
    }
    lock.lock();
    if (--work.inside == 0) left_.notify_all();
  }
}

}  // namespace netcl::openblas
