// Waiting on a 32-bit word that several processes share, and time for waits.
//
// A waiter reads the word, checks its condition, and waits only while the word still has the value
// it read; whoever changes the condition changes the word and wakes. Spurious returns are allowed.
// Threads: any; processes: any that map the word.
#ifndef NETCL_CORE_COLLECTIVE_FUTEX_H_
#define NETCL_CORE_COLLECTIVE_FUTEX_H_

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace netcl {

static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(std::atomic<uint32_t>) == 4,
              "a futex needs a plain 32-bit word");

// Nanoseconds of the monotonic clock, comparable between the processes of one machine.
inline uint64_t monotonic_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

// Waits until `word` may differ from `expected`. Units: timeout_ns, relative.
// Returns false if the time ran out.
inline bool futex_wait(std::atomic<uint32_t>& word, uint32_t expected, uint64_t timeout_ns) {
  timespec t{};
  t.tv_sec = static_cast<time_t>(timeout_ns / 1'000'000'000u);
  t.tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000u);
  const long rc = syscall(SYS_futex, &word, FUTEX_WAIT, expected, &t, nullptr, 0);
  return rc == 0 || word.load(std::memory_order_acquire) != expected;
}

// Wakes every thread that waits on `word`.
inline void futex_wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// How often a wait looks before it sleeps: 0 when the waiters outnumber the processors that this
// process may use, because a spinning thread would then keep the awaited one from running.
inline unsigned spin_budget(unsigned waiters) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 0;
  return static_cast<unsigned>(CPU_COUNT(&set)) > waiters ? 2000u : 0u;
}

}  // namespace netcl

#endif  // NETCL_CORE_COLLECTIVE_FUTEX_H_
