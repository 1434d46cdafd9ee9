// Ranks of one machine meet in shared memory: each puts its bytes there, says so and waits until
// the others have. Simple and right; the plugin `host` of netcl does the same faster.
#include "interconnect.h"

#include <sched.h>

#include <chrono>

using netcl::plugin::check;
using netcl::plugin::Failure;
using netcl::plugin::Host;

Interconnect::Interconnect(const Host& host, const netcl_group_spec& spec)
    : rank_(spec.rank), n_ranks_(spec.n_ranks), timeout_ns_(spec.timeout_ns), boot_(spec.boot) {
  // Every rank asks for the same memory; what is small, such as an address, goes through
  // boot_exchange() instead.
  void* memory = nullptr;
  const uint64_t places = (n_ranks_ * sizeof(Place) + 4095) / 4096 * 4096;
  check(host.table()->boot_shared(host.call(), boot_, places + 2 * n_ranks_ * kMaxBytes, &memory),
        "boot_shared");
  places_ = static_cast<Place*>(memory);
  slots_ = static_cast<char*>(memory) + places;
}

char* Interconnect::slot(uint32_t rank, uint64_t stage) const {
  return slots_ + (2 * rank + stage % 2) * kMaxBytes;
}

char* Interconnect::mine() const { return slot(rank_, stage_ + 1); }

// Slots are used in turn: who writes into one for the second time knows that the others have come
// to the exchange between, so they are done with what was in it.
std::vector<const char*> Interconnect::exchange(const Host& host, uint64_t,
                                                const std::string& what) {
  places_[rank_].stage.store(++stage_);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<const char*> out;
  for (uint32_t r = 0; r < n_ranks_; ++r) {
    for (uint32_t looked = 0; places_[r].stage.load() < stage_; ++looked) {
      sched_yield();
      if (looked % 64 != 0) continue;
      check(host.table()->boot_status(host.call(), boot_), "boot_status");
      throw_if_aborted();
      if (std::chrono::steady_clock::now() - begin > std::chrono::nanoseconds(timeout_ns_))
        throw Failure(NETCL_E_TIMEOUT, what + ": rank " + std::to_string(rank_) +
                                           " waited in vain for rank " + std::to_string(r));
    }
    out.push_back(slot(r, stage_));
  }
  throw_if_aborted();
  return out;
}

void Interconnect::abort(std::string_view reason) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!aborted_) reason_ = reason;
  aborted_ = true;
}

void Interconnect::throw_if_aborted() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (aborted_) throw Failure(NETCL_E_CANCELLED, "aborted: " + reason_);
}
