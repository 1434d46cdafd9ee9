// Snapshots: the state of a run in memory that outlives its workers.
//
// A memfd that the supervisor makes and every worker inherits, with two slots that are written in
// turn: a worker that dies while it writes one leaves the other whole. All ranks write a slot after
// the same step, each its own part, and mark it with that step; a slot is valid once all ranks of
// its group have marked it with the same one. Nobody waits: a rank begins a slot only after a step
// that no rank can have made before it had marked the slot before.
//
// What lies in a slot: arenas that the group has in common, of which each rank writes the ranges
// that it holds (with a replicated update rank 0 all of them); values of each rank's own; a text,
// by rank 0.
//
// Ownership: each object owns its mapping. Threads: one for one object; processes: any.
#ifndef NETCL_CORE_DISTRIBUTED_SNAPSHOT_H_
#define NETCL_CORE_DISTRIBUTED_SNAPSHOT_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/unique_fd.h"
#include "core/collective/segment.h"

namespace netcl {

namespace snapshot_layout {
struct Header;
struct Slot;
}  // namespace snapshot_layout

// Sizes, the same on all ranks and in all generations of a run.
struct SnapshotSizes {
  std::vector<uint64_t> arenas;  // floats of each
  uint64_t own_floats = 0;       // of each rank
  uint32_t most_ranks = 1;       // that the run ever has
};

class Snapshots {
 public:
  static constexpr size_t kMostArenas = 16;
  static constexpr size_t kOwnNumbers = 8;
  static constexpr size_t kTextBytes = 64 * 1024;
  using OwnNumbers = std::array<double, kOwnNumbers>;

  // A whole snapshot.
  struct Found {
    uint32_t slot = 0;
    int64_t step = 0;
    uint32_t n_ranks = 0;  // of the group that wrote it
  };

  // A memfd without snapshots. Errors: kTraining if memory is short.
  static UniqueFd create();
  // `fd` stays open as long as the object. Errors: kInternal if it holds no snapshots.
  explicit Snapshots(int fd);
  ~Snapshots();
  Snapshots(const Snapshots&) = delete;
  Snapshots& operator=(const Snapshots&) = delete;

  // The newest whole one.
  std::optional<Found> newest() const;

  // Allocates both slots. Every rank calls it, with the same sizes, before it reads or writes.
  // Errors: kTraining if memory is short.
  void reserve(const SnapshotSizes& sizes);

  // Writing slot `slot` as `rank`: begin, any of put_*, commit.
  void begin(uint32_t slot, uint32_t rank);
  void put(uint32_t slot, size_t arena, uint64_t offset, const float* values, uint64_t count);
  void put_own(uint32_t slot, uint32_t rank, const std::vector<float>& values,
               const OwnNumbers& numbers);
  // Errors: kInternal for a text of more than kTextBytes.
  void put_text(uint32_t slot, std::string_view text);
  // `generation`: of the group; marks of another one do not count.
  void commit(uint32_t slot, uint32_t rank, uint32_t n_ranks, int64_t step, uint32_t generation);

  std::vector<float> arena(uint32_t slot, size_t arena) const;
  std::vector<float> own(uint32_t slot, uint32_t rank) const;
  OwnNumbers own_numbers(uint32_t slot, uint32_t rank) const;
  std::string text(uint32_t slot) const;

  // For tests of faults: marks number `index` (below 64); true for the first who does.
  bool mark_once(uint32_t index);

 private:
  snapshot_layout::Header& header() const;
  snapshot_layout::Slot& slot_of(uint32_t slot) const;
  char* slot_bytes(uint32_t slot) const;
  float* arena_begin(uint32_t slot, size_t arena) const;
  char* own_begin(uint32_t slot, uint32_t rank) const;

  const int fd_;
  SharedRegion head_;
  SnapshotSizes sizes_;
  std::optional<SharedRegion> slots_[2];
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_SNAPSHOT_H_
