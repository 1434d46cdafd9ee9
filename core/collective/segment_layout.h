// Bytes of the control segment. Private to core/collective; tests may look.
//
// Everything that two processes touch at once is an atomic. Each rank writes its own blocks only.
#ifndef NETCL_CORE_COLLECTIVE_SEGMENT_LAYOUT_H_
#define NETCL_CORE_COLLECTIVE_SEGMENT_LAYOUT_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "core/collective/segment.h"

namespace netcl::segment_layout {

constexpr uint64_t kMagic = 0x314745534c43544eull;  // "NTCLSEG1"
constexpr uint32_t kVersion = 2;
constexpr uint32_t kFlightEvents = 64;
constexpr uint32_t kHeapEntries = 1024;
constexpr size_t kLine = 64;
constexpr int kReadAttempts = 100'000;  // far beyond any writer that does something else, too

static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(std::atomic<uint64_t>) == 8,
              "shared counters need plain 64-bit words");

// N bytes that one writer changes and others read. The writer fills the copy that nobody is shown
// and then publishes it, so a writer that is slow or dies in the middle leaves the last whole text.
// A reader tries again only if a new text was published while it read.
template <size_t N>
struct SharedBytes {
  static_assert(N % 8 == 0, "whole words");
  std::atomic<uint64_t> version;  // copies[version % 2] is the published one
  std::atomic<uint64_t> copies[2][N / 8];

  void store(const void* bytes, size_t size) {
    uint64_t buffer[N / 8] = {};
    std::memcpy(buffer, bytes, std::min(size, N));
    const uint64_t next = version.load(std::memory_order_relaxed) + 1;
    // Release and acquire at every word: who sees a word of the version after `before` + 1 sees
    // that `before` is no longer the published one.
    for (size_t i = 0; i < N / 8; ++i)
      copies[next % 2][i].store(buffer[i], std::memory_order_release);
    version.store(next, std::memory_order_release);
  }
  void load(void* bytes) const {
    uint64_t buffer[N / 8];
    for (int attempt = 0; attempt < kReadAttempts; ++attempt) {
      const uint64_t before = version.load(std::memory_order_acquire);
      for (size_t i = 0; i < N / 8; ++i)
        buffer[i] = copies[before % 2][i].load(std::memory_order_acquire);
      if (before == version.load(std::memory_order_relaxed)) break;
    }
    std::memcpy(bytes, buffer, N);
  }
  void store_text(std::string_view text) { store(text.data(), std::min(text.size(), N - 1)); }
  std::string load_text() const {
    char text[N + 1] = {};
    load(text);
    return text;
  }
};

struct FlightRecord {
  std::atomic<uint64_t> time_ns, number;
  SharedBytes<48> text;
};

struct alignas(kLine) RankBlock {
  std::atomic<uint64_t> ticks, heartbeat_ns;
  std::atomic<int64_t> pid, step;
  SharedBytes<128> device;
  SharedBytes<64> phase;
  SharedBytes<sizeof(CollectiveNote)> collective;
  alignas(kLine) std::atomic<uint64_t> n_events;
  FlightRecord flight[kFlightEvents];
  // Set-up channel: `round` counts the exchanges this rank has published; two buffers, because a
  // rank can be at most one exchange ahead of the slowest reader.
  alignas(kLine) std::atomic<uint64_t> round;
  struct Message {
    uint64_t bytes;
    unsigned char data[kExchangeBytes];
  } message[2];
};

struct HeapEntry {
  std::atomic<uint32_t> users;  // ranks that still hold it; 0: the entry is free
  std::atomic<uint64_t> offset, bytes;
};

enum : uint32_t { kRunning = 0, kAborting = 1, kAborted = 2 };

struct alignas(kLine) Header {
  uint64_t magic;
  uint32_t version, n_ranks;
  uint64_t control_bytes;
  alignas(kLine) std::atomic<uint32_t> abort_state;
  SharedBytes<512> abort_reason;
  std::atomic<uint32_t> stop_requested;             // by the supervisor
  std::atomic<int64_t> stop_step_plus_1;            // by rank 0; 0: none
  std::atomic<int64_t> due_step_plus_1[kDueKinds];  // by rank 0; 0: none
  // Changes with every exchange and with abort: what set-up waits sleep on.
  alignas(kLine) std::atomic<uint32_t> bell;
  alignas(kLine) std::atomic<uint64_t> heap_end;
  HeapEntry heap[kHeapEntries];
};

}  // namespace netcl::segment_layout

#endif  // NETCL_CORE_COLLECTIVE_SEGMENT_LAYOUT_H_
