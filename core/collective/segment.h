// The control segment: memory that the supervisor and the workers of one run share.
//
// It is a memfd: it has no name in the file system, is inherited by descriptor, and vanishes with
// the last process that holds it. Its pages are allocated when it is created, so a full memory is
// an error at start and never a bus error later. Behind the control blocks lies a heap from which
// Bootstrap cuts shared memory. Text is kept in atomic words, so the supervisor can read what a
// killed worker wrote last.
//
// Ownership: every Segment object owns its descriptor and its mapping.
// Threads: any, except where a function says "the rank itself": one thread of that rank at a time.
#ifndef NETCL_CORE_COLLECTIVE_SEGMENT_H_
#define NETCL_CORE_COLLECTIVE_SEGMENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/unique_fd.h"

namespace netcl {

constexpr uint32_t kMaxRanks = 256;
constexpr size_t kExchangeBytes = 256;

// What all ranks do after the same step, because rank 0 has announced it.
enum class Due : uint32_t { kSnapshot = 0, kCheck = 1 };
constexpr uint32_t kDueKinds = 2;

namespace segment_layout {
struct Header;
struct RankBlock;
}  // namespace segment_layout

// What a rank says about the collective it has posted last; 64 bytes.
struct CollectiveNote {
  uint64_t sequence = 0;
  uint32_t op = 0, dtype = 0;
  uint64_t count = 0;
  char name[40] = {};
};
static_assert(sizeof(CollectiveNote) == 64, "one cache line");

// One line of a rank's flight recorder.
struct FlightEvent {
  uint64_t time_ns = 0;  // monotonic clock
  uint64_t number = 0;   // 0, 1, 2, ... since the rank started
  std::string text;      // at most 47 bytes
};

// What the supervisor sees of a rank.
struct RankState {
  int64_t pid = 0;
  std::string device, phase;
  int64_t step = 0;
  uint64_t ticks = 0;         // grows with every sign of progress
  uint64_t heartbeat_ns = 0;  // monotonic clock at the last tick
  CollectiveNote collective;
};

// A memfd part mapped into this process; unmapped by the destructor.
class SharedRegion {
 public:
  // Errors: kTraining if the system refuses the mapping.
  SharedRegion(int fd, uint64_t offset_bytes, size_t size_bytes);
  SharedRegion(SharedRegion&&) noexcept;
  SharedRegion& operator=(SharedRegion&&) noexcept;
  ~SharedRegion();
  void* data() const;
  size_t size_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

class Segment {
 public:
  // Makes the segment for `n_ranks` workers (the supervisor does).
  // Errors: kUsage for a bad number of ranks; kTraining if memory is short.
  static std::shared_ptr<Segment> create(uint32_t n_ranks);
  // Maps the segment behind an inherited descriptor, which the Segment then owns.
  // Errors: kInternal if it is no segment of this version.
  static std::shared_ptr<Segment> attach(UniqueFd fd);

  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  int fd() const { return fd_.get(); }
  uint32_t n_ranks() const;

  // Stops the group: every wait of every rank ends within about a millisecond. The first reason
  // wins. Returns true if this call's reason is the one.
  bool abort(std::string_view reason);
  // The reason, once the group is aborted.
  std::optional<std::string> aborted() const;

  // An orderly stop: the supervisor asks for it; rank 0 sets the step at which every rank stops
  // (-1: none), before it takes part in the last reduction before that step.
  void request_stop();
  bool stop_requested() const;
  void set_stop_step(int64_t step);
  int64_t stop_step() const;

  // What is due after which step: as with the stop, rank 0 sets a step that no rank can have passed
  // without it, and the next one only after that (-1: none).
  void announce(Due what, int64_t step);
  int64_t announced(Due what) const;

  // Written by the rank itself; each counts as progress.
  void set_identity(uint32_t rank, int64_t pid, std::string_view device);
  void set_phase(uint32_t rank, std::string_view phase);
  void set_step(uint32_t rank, int64_t step);
  void set_collective(uint32_t rank, const CollectiveNote& note);
  void tick(uint32_t rank);
  // Adds a line to the rank's flight recorder, which keeps the last 64.
  void record(uint32_t rank, std::string_view text);

  RankState state(uint32_t rank) const;
  // The recorder's lines, oldest first.
  std::vector<FlightEvent> flight(uint32_t rank) const;

 private:
  friend class Bootstrap;
  explicit Segment(UniqueFd fd, SharedRegion region);
  segment_layout::Header& header() const;
  segment_layout::RankBlock& block(uint32_t rank) const;

  UniqueFd fd_;
  SharedRegion region_;
};

}  // namespace netcl

#endif  // NETCL_CORE_COLLECTIVE_SEGMENT_H_
