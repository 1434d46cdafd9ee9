// What the ranks of one group share besides the buckets, and how they wait for each other.
//
// Every rank writes its own RankLine only. Counters count chunks since the group was opened; all
// ranks cut the same collectives into the same chunks, so equal counters mean the same chunk. Plain
// members are published by the release store of a counter and read after an acquire load of it.
// Threads: a rank's progress thread; ring() from any.
#ifndef NETCL_PLUGINS_TRANSPORT_HOST_SHARED_STATE_H_
#define NETCL_PLUGINS_TRANSPORT_HOST_SHARED_STATE_H_

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace netcl::host_transport {

// Compared between ranks before anything is added.
struct Descriptor {
  uint64_t sequence, bucket_bytes, offset_bytes, count;
  uint32_t kind, dtype, redop, root;
  char name[40];
};

struct alignas(64) RankLine {
  std::atomic<uint64_t> published;            // chunks whose contribution lies in the slot
  alignas(64) std::atomic<uint64_t> reduced;  // chunks whose slice lies in the result
  alignas(64) std::atomic<uint32_t> fault;    // NETCL_E_*, once this rank has given up
  char fault_text[444];
  // Two, because a rank can be at most one collective ahead of the slowest reader.
  Descriptor descriptor[2];
};

struct alignas(64) SharedState {
  std::atomic<uint32_t> bell;      // changes with every counter
  std::atomic<uint32_t> sleepers;  // threads that may be asleep on the bell
  RankLine* rank(uint32_t r) { return reinterpret_cast<RankLine*>(this + 1) + r; }
  static size_t size_bytes(uint32_t n_ranks) {
    return sizeof(SharedState) + n_ranks * sizeof(RankLine);
  }

  // Wakes everyone who waits for a counter. The order bell, sleepers here and sleepers, bell in
  // sleep() makes it impossible that a sleeper misses a change.
  void ring() {
    bell.fetch_add(1);
    if (sleepers.load() != 0) {
      syscall(SYS_futex, &bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    }
  }
  // Sleeps until the bell differs from `seen`, at most `ns` (below a second).
  void sleep(uint32_t seen, uint64_t ns) {
    timespec t{};
    t.tv_nsec = static_cast<long>(ns);
    sleepers.fetch_add(1);
    if (bell.load() == seen) syscall(SYS_futex, &bell, FUTEX_WAIT, seen, &t, nullptr, 0);
    sleepers.fetch_sub(1);
  }
};

inline uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

// Looks before sleeping: none when ranks outnumber the processors, where spinning would keep the
// awaited rank from running.
inline unsigned spin_budget(uint32_t n_ranks) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 0;
  return static_cast<uint32_t>(CPU_COUNT(&set)) >= 2 * n_ranks ? 2000u : 0u;
}

}  // namespace netcl::host_transport

#endif  // NETCL_PLUGINS_TRANSPORT_HOST_SHARED_STATE_H_
