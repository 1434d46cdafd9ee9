#include "plugins/transport/host/reducers.h"

#include "plugins/transport/host/shared_state.h"

namespace netcl::host_transport {

Reducers::Reducers(uint32_t n_threads) {
  for (uint32_t i = 0; i < n_threads; ++i) threads_.emplace_back([this] { loop(); });
}

Reducers::~Reducers() {
  closing_.store(true);
  round_.fetch_add(1);
  wake_all(round_);
  for (std::thread& t : threads_) t.join();
}

void Reducers::start(Work* work) {
  work_ = work;
  next_.store(0, std::memory_order_relaxed);
  busy_.store(size(), std::memory_order_relaxed);
  round_.fetch_add(1);
  wake_all(round_);
}

void Reducers::finish() {
  for (uint32_t left = busy_.load(); left != 0; left = busy_.load()) {
    wait_while(busy_, left, 1'000'000);
  }
}

void Reducers::loop() {
  for (uint32_t seen = 0;;) {
    uint32_t round = round_.load();
    while (round == seen) {
      wait_while(round_, seen, 500'000'000);
      round = round_.load();
    }
    seen = round;
    if (closing_.load()) return;
    const uint64_t n = work_->pieces();
    for (;;) {
      const uint64_t piece = next_.fetch_add(1, std::memory_order_relaxed);
      if (piece >= n || !work_->wait_for(piece)) break;
      work_->reduce(piece);
    }
    if (busy_.fetch_sub(1) == 1) wake_all(busy_);
  }
}

}  // namespace netcl::host_transport
