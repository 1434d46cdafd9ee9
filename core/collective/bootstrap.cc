#include "core/collective/bootstrap.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/collective/futex.h"
#include "core/collective/memory_limit.h"
#include "core/collective/segment_layout.h"

namespace netcl {

using segment_layout::Header;
using segment_layout::HeapEntry;
using segment_layout::RankBlock;

namespace {

std::string list_ranks(const std::vector<uint32_t>& ranks) {
  std::vector<std::string> names;
  for (const uint32_t r : ranks) names.push_back(std::to_string(r));
  return (ranks.size() == 1 ? "rank " : "ranks ") + join(names, ", ");
}

}  // namespace

Bootstrap::Bootstrap(std::shared_ptr<Segment> segment, uint32_t rank, uint64_t timeout_ns)
    : segment_(std::move(segment)), rank_(rank), timeout_ns_(timeout_ns) {
  NETCL_CHECK(rank_ < segment_->n_ranks(), ErrorCode::kInternal, "no rank ", rank_,
              " in a group of ", segment_->n_ranks());
}

Bootstrap::~Bootstrap() {
  for (Piece& piece : pieces_) {
    const uint32_t entry = piece.entry;
    { const SharedRegion unmapped = std::move(piece.region); }
    drop(entry);
  }
}

std::vector<uint32_t> Bootstrap::late(uint64_t round) const {
  std::vector<uint32_t> ranks;
  for (uint32_t r = 0; r < n_ranks(); ++r) {
    if (segment_->block(r).round.load(std::memory_order_acquire) < round) ranks.push_back(r);
  }
  return ranks;
}

void Bootstrap::wait_for_round(uint64_t round) {
  Header& h = segment_->header();
  const uint64_t deadline = monotonic_ns() + timeout_ns_;
  for (;;) {
    const uint32_t bell = h.bell.load(std::memory_order_acquire);
    const std::vector<uint32_t> missing = late(round);
    if (missing.empty()) return;
    if (const auto reason = segment_->aborted()) {
      fail(ErrorCode::kTraining, "rank ", rank_, " stopped during set-up: ", *reason);
    }
    const uint64_t now = monotonic_ns();
    NETCL_CHECK(now < deadline, ErrorCode::kTraining, "rank ", rank_, " waited ",
                timeout_ns_ / 1'000'000u, " ms during set-up for ", list_ranks(missing),
                "; look at what they do, or allow more time");
    segment_->tick(rank_);
    futex_wait(h.bell, bell, std::min<uint64_t>(deadline - now, 100'000'000u));
  }
}

void Bootstrap::exchange(const void* mine, size_t bytes, void* all) {
  NETCL_CHECK(bytes <= kExchangeBytes, ErrorCode::kInternal, "an exchange carries at most ",
              kExchangeBytes, " bytes, not ", bytes);
  RankBlock& own = segment_->block(rank_);
  // A rank publishes round k+1 only after it has read round k of everyone; so once round k+1 is
  // complete nobody reads round k any more, and two buffers are enough.
  const uint64_t round = own.round.load(std::memory_order_relaxed) + 1;
  RankBlock::Message& message = own.message[round % 2];
  message.bytes = bytes;
  if (bytes > 0) std::memcpy(message.data, mine, bytes);
  own.round.store(round, std::memory_order_release);
  segment_->header().bell.fetch_add(1);
  futex_wake_all(segment_->header().bell);
  wait_for_round(round);
  for (uint32_t r = 0; r < n_ranks(); ++r) {
    const RankBlock::Message& theirs = segment_->block(r).message[round % 2];
    NETCL_CHECK(theirs.bytes == bytes, ErrorCode::kInternal, "set-up exchange ", round, ": rank ",
                r, " sends ", theirs.bytes, " bytes but rank ", rank_, " sends ", bytes,
                "; all ranks must make the same calls in the same order");
    if (bytes > 0) std::memcpy(static_cast<char*>(all) + r * bytes, theirs.data, bytes);
  }
}

Bootstrap::Offer Bootstrap::allocate(uint64_t bytes) {
  Header& h = segment_->header();
  Offer offer{};
  HeapEntry* free_entry = std::find_if(std::begin(h.heap), std::end(h.heap),
                                       [](const HeapEntry& e) { return e.users.load() == 0; });
  if (free_entry == std::end(h.heap)) {
    offer.error = ENOSPC;
    return offer;
  }
  // The heap only grows: pages of freed pieces are given back, their addresses are not used again,
  // so new memory is always zero.
  offer.offset = h.heap_end.load();
  offer.error = allocate_pages(segment_->fd(), offer.offset, bytes);
  if (offer.error != 0) return offer;
  h.heap_end.store(offer.offset + bytes);
  free_entry->offset.store(offer.offset);
  free_entry->bytes.store(bytes);
  free_entry->users.store(n_ranks());
  offer.entry = static_cast<uint32_t>(free_entry - std::begin(h.heap));
  return offer;
}

void Bootstrap::drop(uint32_t entry) const {
  HeapEntry& e = segment_->header().heap[entry];
  const auto offset = static_cast<off_t>(e.offset.load());
  const auto bytes = static_cast<off_t>(e.bytes.load());
  // Addresses are never used again, so the last rank can free the pages after giving up the entry.
  if (e.users.fetch_sub(1) == 1) {
    fallocate(segment_->fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
  }
}

void* Bootstrap::shared_memory(uint64_t bytes) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t rounded = (std::max<uint64_t>(bytes, 1) + page - 1) / page * page;
  NETCL_CHECK(bytes < (uint64_t{1} << 46), ErrorCode::kInternal, "shared memory of ", bytes,
              " bytes is beyond every machine");
  Offer mine{};
  if (rank_ == 0) mine = allocate(rounded);
  mine.bytes = bytes;
  std::vector<Offer> offers(n_ranks());
  exchange(&mine, sizeof(mine), offers.data());
  for (uint32_t r = 1; r < n_ranks(); ++r) {
    NETCL_CHECK(offers[r].bytes == offers[0].bytes, ErrorCode::kInternal, "rank ", r, " asks for ",
                offers[r].bytes, " bytes of shared memory but rank 0 for ", offers[0].bytes);
  }
  const Offer offer = offers[0];
  NETCL_CHECK(offer.error == 0, ErrorCode::kTraining, "cannot allocate ", rounded,
              " bytes of shared memory: ", strerror(offer.error),
              "; free some memory, or use fewer workers or a smaller model");
  // Mapping can fail on one rank alone; the others must learn of it.
  std::string problem;
  try {
    pieces_.push_back({SharedRegion(segment_->fd(), offer.offset, rounded), offer.entry});
  } catch (const Error& e) {
    problem = e.message();
  }
  const uint8_t ok = problem.empty() ? 1 : 0;
  std::vector<uint8_t> all_ok(n_ranks());
  exchange(&ok, 1, all_ok.data());
  NETCL_CHECK(ok == 1, ErrorCode::kTraining, problem);
  for (uint32_t r = 0; r < n_ranks(); ++r) {
    NETCL_CHECK(all_ok[r] == 1, ErrorCode::kTraining, "rank ", r, " cannot map ", rounded,
                " bytes of shared memory; use fewer workers or a smaller model");
  }
  return pieces_.back().region.data();
}

}  // namespace netcl
