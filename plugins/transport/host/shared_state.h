// What the ranks of one group share besides the buckets, and how they wait for each other.
//
// Every rank writes its own RankLine and counts only. Counters count chunks since the group was
// opened; all ranks cut the same collectives into the same chunks, so equal counters mean the same
// chunk. Plain members are published by the release store of a counter and read after an acquire
// load of it.
// Threads: writing, the one that runs the rank's collective; reading and ring(), any.
#ifndef NETCL_PLUGINS_TRANSPORT_HOST_SHARED_STATE_H_
#define NETCL_PLUGINS_TRANSPORT_HOST_SHARED_STATE_H_

#include <linux/futex.h>
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

// Compared between ranks before anything is added, all but the weight; so are the counts.
struct Descriptor {
  uint64_t sequence, bucket_bytes, offset_bytes, count;
  uint32_t kind, dtype, redop, root, flags;
  double weight;
  char name[40];
};

struct alignas(64) RankLine {
  // Chunks whose contribution may be read. Also: in no earlier collective of this rank, and on none
  // of its devices, does anything still read the result.
  std::atomic<uint64_t> published;
  // Chunks whose share lies in the result; of their slots this rank reads nothing any more.
  alignas(64) std::atomic<uint64_t> placed;
  alignas(64) std::atomic<uint32_t> fault;  // NETCL_E_*, once this rank has given up
  char fault_text[444];
  // Two, because a rank can be at most one collective ahead of the slowest reader.
  Descriptor descriptor[2];
};

// Sleeps while `word` is `seen`, at most `ns` (below a second). Returns early now and then.
inline void wait_while(std::atomic<uint32_t>& word, uint32_t seen, uint64_t ns) {
  timespec t{};
  t.tv_nsec = static_cast<long>(ns);
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &t, nullptr, 0);
}
inline void wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

struct alignas(64) SharedState {
  std::atomic<uint32_t> bell;      // changes with every counter
  std::atomic<uint32_t> sleepers;  // threads that may be asleep on the bell
  RankLine* rank(uint32_t r) { return reinterpret_cast<RankLine*>(this + 1) + r; }
  // The parts of the ranks, as rank `r` says them; where parts mean nothing, all 0.
  uint64_t* counts(uint32_t r, uint32_t n_ranks, uint64_t sequence) {
    return reinterpret_cast<uint64_t*>(rank(n_ranks)) + (2 * uint64_t{r} + sequence % 2) * n_ranks;
  }
  static size_t size_bytes(uint32_t n_ranks) {
    return sizeof(SharedState) + n_ranks * (sizeof(RankLine) + 2 * n_ranks * sizeof(uint64_t));
  }

  // Wakes everyone who waits for a counter. The order bell, sleepers here and sleepers, bell in
  // sleep() makes it impossible that a sleeper misses a change.
  void ring() {
    bell.fetch_add(1);
    if (sleepers.load() != 0) wake_all(bell);
  }
  // Sleeps until the bell differs from `seen`, at most `ns` (below a second).
  void sleep(uint32_t seen, uint64_t ns) {
    sleepers.fetch_add(1);
    if (bell.load() == seen) wait_while(bell, seen, ns);
    sleepers.fetch_sub(1);
  }
};

inline uint64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

// Tells the processor that this is a waiting loop.
inline void relax() { __builtin_ia32_pause(); }

}  // namespace netcl::host_transport

#endif  // NETCL_PLUGINS_TRANSPORT_HOST_SHARED_STATE_H_
