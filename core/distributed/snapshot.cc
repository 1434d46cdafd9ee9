#include "core/distributed/snapshot.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <numeric>

#include "core/base/error.h"
#include "core/collective/memory_limit.h"

namespace netcl {

namespace snapshot_layout {

constexpr uint64_t kMagic = 0x31504e534c43544eull;  // "NTCLSNP1"

struct Slot {
  // Generation and step + 1 of what the rank has written whole; 0: nothing.
  std::atomic<uint64_t> marks[kMaxRanks];
  std::atomic<uint32_t> n_ranks;
  std::atomic<uint64_t> text_bytes;
};

struct Header {
  uint64_t magic;
  std::atomic<uint64_t> marked_once;
  Slot slots[2];
};

}  // namespace snapshot_layout

using snapshot_layout::Header;
using snapshot_layout::kMagic;
using snapshot_layout::Slot;

namespace {

constexpr uint64_t kPage = 4096;

constexpr uint64_t kStepBits = 44;

uint64_t pages(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

uint64_t own_bytes(const SnapshotSizes& sizes) {
  return sizeof(Snapshots::OwnNumbers) + (sizes.own_floats + 1) / 2 * 2 * sizeof(float);
}

uint64_t arena_bytes(const SnapshotSizes& sizes) {
  const uint64_t floats = std::accumulate(sizes.arenas.begin(), sizes.arenas.end(), uint64_t{0});
  return (floats + 1) / 2 * 2 * sizeof(float);
}

// The text, every rank's own values, the arenas.
uint64_t slot_size(const SnapshotSizes& sizes) {
  return pages(Snapshots::kTextBytes + sizes.most_ranks * own_bytes(sizes) + arena_bytes(sizes));
}

}  // namespace

UniqueFd Snapshots::create() {
  UniqueFd fd(memfd_create("netcl-snapshots", MFD_CLOEXEC));
  NETCL_CHECK(fd.valid(), ErrorCode::kTraining,
              "cannot make memory for snapshots: ", strerror(errno));
  const int rc = allocate_pages(fd.get(), 0, pages(sizeof(Header)));
  NETCL_CHECK(rc == 0, ErrorCode::kTraining, "cannot allocate memory for snapshots: ", strerror(rc),
              "; free some memory");
  const SharedRegion region(fd.get(), 0, sizeof(Header));
  auto* header = new (region.data()) Header();
  header->magic = kMagic;
  return fd;
}

Snapshots::Snapshots(int fd) : fd_(fd), head_(fd, 0, sizeof(Header)) {
  NETCL_CHECK(header().magic == kMagic, ErrorCode::kInternal, "descriptor ", fd,
              " holds no snapshots; supervisor and worker must be the same program");
}

Snapshots::~Snapshots() = default;

Header& Snapshots::header() const { return *static_cast<Header*>(head_.data()); }
Slot& Snapshots::slot_of(uint32_t slot) const { return header().slots[slot]; }

std::optional<Snapshots::Found> Snapshots::newest() const {
  std::optional<Found> out;
  for (uint32_t s = 0; s < 2; ++s) {
    const Slot& slot = slot_of(s);
    const uint32_t n = slot.n_ranks.load(std::memory_order_acquire);
    const uint64_t mark = slot.marks[0].load(std::memory_order_acquire);
    bool whole = n > 0 && mark != 0;
    for (uint32_t r = 1; r < n && whole; ++r)
      whole = slot.marks[r].load(std::memory_order_acquire) == mark;
    const auto step = static_cast<int64_t>(mark & ((uint64_t{1} << kStepBits) - 1)) - 1;
    if (whole && (!out || step > out->step)) out = Found{s, step, n};
  }
  return out;
}

void Snapshots::reserve(const SnapshotSizes& sizes) {
  NETCL_CHECK(sizes.arenas.size() <= kMostArenas && sizes.most_ranks <= kMaxRanks,
              ErrorCode::kInternal, "a snapshot of ", sizes.arenas.size(), " arenas and ",
              sizes.most_ranks, " ranks");
  sizes_ = sizes;
  const uint64_t begin = pages(sizeof(Header)), size = slot_size(sizes);
  struct stat info {};
  NETCL_CHECK(fstat(fd_, &info) == 0, ErrorCode::kInternal, "snapshots: ", strerror(errno));
  // Only the first to come allocates, so that memory is not asked for once a rank.
  if (static_cast<uint64_t>(info.st_size) < begin + 2 * size) {
    const int rc = allocate_pages(fd_, begin, 2 * size);
    NETCL_CHECK(rc == 0, ErrorCode::kTraining, "cannot allocate ", 2 * size,
                " bytes for two snapshots of the run: ", strerror(rc),
                "; free some memory, or train with --on-failure stop");
  }
  for (uint32_t s = 0; s < 2; ++s) slots_[s].emplace(fd_, begin + s * size, size);
}

char* Snapshots::slot_bytes(uint32_t slot) const {
  NETCL_CHECK(slot < 2 && slots_[slot], ErrorCode::kInternal, "snapshot slot ", slot,
              " is not there");
  return static_cast<char*>(slots_[slot]->data());
}

char* Snapshots::own_begin(uint32_t slot, uint32_t rank) const {
  NETCL_CHECK(rank < sizes_.most_ranks, ErrorCode::kInternal, "a snapshot has no rank ", rank);
  return slot_bytes(slot) + kTextBytes + rank * own_bytes(sizes_);
}

float* Snapshots::arena_begin(uint32_t slot, size_t arena) const {
  NETCL_CHECK(arena < sizes_.arenas.size(), ErrorCode::kInternal, "a snapshot has no arena ",
              arena);
  char* base = slot_bytes(slot) + kTextBytes + sizes_.most_ranks * own_bytes(sizes_);
  const auto end = sizes_.arenas.begin() + static_cast<std::ptrdiff_t>(arena);
  return reinterpret_cast<float*>(base) + std::accumulate(sizes_.arenas.begin(), end, uint64_t{0});
}

void Snapshots::begin(uint32_t slot, uint32_t rank) {
  slot_of(slot).marks[rank].store(0, std::memory_order_seq_cst);
}

void Snapshots::put(uint32_t slot, size_t arena, uint64_t offset, const float* values,
                    uint64_t count) {
  float* out = arena_begin(slot, arena);
  NETCL_CHECK(offset <= sizes_.arenas[arena] && count <= sizes_.arenas[arena] - offset,
              ErrorCode::kInternal, "a snapshot's arena ", arena, " of ", sizes_.arenas[arena],
              " floats cannot hold ", count, " at ", offset);
  std::memcpy(out + offset, values, count * sizeof(float));
}

void Snapshots::put_own(uint32_t slot, uint32_t rank, const std::vector<float>& values,
                        const OwnNumbers& numbers) {
  NETCL_CHECK(values.size() == sizes_.own_floats, ErrorCode::kInternal, "a snapshot holds ",
              sizes_.own_floats, " values of a rank, not ", values.size());
  char* out = own_begin(slot, rank);
  std::memcpy(out, numbers.data(), sizeof(numbers));
  std::copy(values.begin(), values.end(), reinterpret_cast<float*>(out + sizeof(numbers)));
}

void Snapshots::put_text(uint32_t slot, std::string_view text) {
  NETCL_CHECK(text.size() <= kTextBytes, ErrorCode::kInternal, "a snapshot's text of ", text.size(),
              " bytes; at most ", kTextBytes);
  text.copy(slot_bytes(slot), text.size());
  slot_of(slot).text_bytes.store(text.size(), std::memory_order_relaxed);
}

void Snapshots::commit(uint32_t slot, uint32_t rank, uint32_t n_ranks, int64_t step,
                       uint32_t generation) {
  Slot& s = slot_of(slot);
  // Marks of ranks that this group lacks are nobody's.
  if (rank == 0) s.n_ranks.store(n_ranks, std::memory_order_release);
  const uint64_t mark = uint64_t{generation} << kStepBits | static_cast<uint64_t>(step + 1);
  s.marks[rank].store(mark, std::memory_order_release);
}

std::vector<float> Snapshots::arena(uint32_t slot, size_t arena) const {
  const float* begin = arena_begin(slot, arena);
  return {begin, begin + sizes_.arenas[arena]};
}

std::vector<float> Snapshots::own(uint32_t slot, uint32_t rank) const {
  const auto* begin = reinterpret_cast<float*>(own_begin(slot, rank) + sizeof(OwnNumbers));
  return {begin, begin + sizes_.own_floats};
}

Snapshots::OwnNumbers Snapshots::own_numbers(uint32_t slot, uint32_t rank) const {
  OwnNumbers out{};
  std::memcpy(out.data(), own_begin(slot, rank), sizeof(out));
  return out;
}

std::string Snapshots::text(uint32_t slot) const {
  return {slot_bytes(slot), slot_of(slot).text_bytes.load(std::memory_order_relaxed)};
}

bool Snapshots::mark_once(uint32_t index) {
  const uint64_t bit = uint64_t{1} << (index % 64);
  return (header().marked_once.fetch_or(bit) & bit) == 0;
}

}  // namespace netcl
