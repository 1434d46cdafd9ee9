#include "core/collective/segment.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <boost/interprocess/mapped_region.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/collective/futex.h"
#include "core/collective/memory_limit.h"
#include "core/collective/segment_layout.h"

namespace netcl {

namespace bip = boost::interprocess;
using segment_layout::FlightRecord;
using segment_layout::Header;
using segment_layout::kAborted;
using segment_layout::kAborting;
using segment_layout::kFlightEvents;
using segment_layout::kMagic;
using segment_layout::kRunning;
using segment_layout::kVersion;
using segment_layout::RankBlock;

namespace {

// What mapped_region asks of a memory object.
class MemoryObject {
 public:
  explicit MemoryObject(int fd) : fd_(fd) {}
  bip::mapping_handle_t get_mapping_handle() const {
    return bip::ipcdetail::mapping_handle_from_file_handle(fd_);
  }

 private:
  int fd_;
};

size_t control_bytes(uint32_t n_ranks) {
  const size_t page = bip::mapped_region::get_page_size();
  const size_t bytes = sizeof(Header) + n_ranks * sizeof(RankBlock);
  return (bytes + page - 1) / page * page;
}

}  // namespace

struct SharedRegion::Impl {
  bip::mapped_region region;
};

SharedRegion::SharedRegion(int fd, uint64_t offset_bytes, size_t size_bytes) {
  try {
    impl_ = std::make_unique<Impl>(Impl{bip::mapped_region(
        MemoryObject(fd), bip::read_write, static_cast<bip::offset_t>(offset_bytes), size_bytes)});
  } catch (const bip::interprocess_exception& e) {
    fail(ErrorCode::kTraining, "cannot map ", size_bytes, " bytes of shared memory: ", e.what(),
         "; use fewer workers or a smaller model");
  }
}
SharedRegion::SharedRegion(SharedRegion&&) noexcept = default;
SharedRegion& SharedRegion::operator=(SharedRegion&&) noexcept = default;
SharedRegion::~SharedRegion() = default;
void* SharedRegion::data() const { return impl_->region.get_address(); }
size_t SharedRegion::size_bytes() const { return impl_->region.get_size(); }

Segment::Segment(UniqueFd fd, SharedRegion region)
    : fd_(std::move(fd)), region_(std::move(region)) {}
Segment::~Segment() = default;

std::shared_ptr<Segment> Segment::create(uint32_t n_ranks) {
  NETCL_CHECK(n_ranks >= 1 && n_ranks <= kMaxRanks, ErrorCode::kUsage, "a group has 1 to ",
              kMaxRanks, " workers, not ", n_ranks);
  UniqueFd fd(memfd_create("netcl-control", MFD_CLOEXEC));
  NETCL_CHECK(fd.valid(), ErrorCode::kTraining, "cannot make shared memory: ", strerror(errno));
  const size_t bytes = control_bytes(n_ranks);
  const int rc = allocate_pages(fd.get(), 0, bytes);
  NETCL_CHECK(rc == 0, ErrorCode::kTraining, "cannot allocate ", bytes,
              " bytes of shared memory for ", n_ranks, " workers: ", strerror(rc),
              "; free some memory");
  SharedRegion region(fd.get(), 0, bytes);
  auto* h = new (region.data()) Header();  // memfd pages are zero, and so are all counters
  h->magic = kMagic;
  h->version = kVersion;
  h->n_ranks = n_ranks;
  h->control_bytes = bytes;
  h->heap_end.store(bytes);
  auto* blocks = reinterpret_cast<RankBlock*>(h + 1);
  for (uint32_t r = 0; r < n_ranks; ++r) new (blocks + r) RankBlock();
  return std::shared_ptr<Segment>(new Segment(std::move(fd), std::move(region)));
}

std::shared_ptr<Segment> Segment::attach(UniqueFd fd) {
  struct stat info {};
  NETCL_CHECK(fd.valid() && fstat(fd.get(), &info) == 0, ErrorCode::kInternal,
              "the control segment's descriptor is not open: was it inherited?");
  NETCL_CHECK(static_cast<size_t>(info.st_size) >= control_bytes(1), ErrorCode::kInternal,
              "the control segment has only ", info.st_size, " bytes");
  uint32_t n_ranks = 0;
  {
    const SharedRegion first(fd.get(), 0, sizeof(Header));
    const auto* h = static_cast<const Header*>(first.data());
    NETCL_CHECK(h->magic == kMagic && h->version == kVersion, ErrorCode::kInternal,
                "the inherited descriptor is no control segment of version ", kVersion,
                "; supervisor and worker must be the same program");
    n_ranks = h->n_ranks;
    NETCL_CHECK(n_ranks >= 1 && n_ranks <= kMaxRanks &&
                    h->control_bytes == control_bytes(n_ranks) &&
                    static_cast<uint64_t>(info.st_size) >= h->control_bytes,
                ErrorCode::kInternal, "the control segment's sizes contradict each other");
  }
  SharedRegion region(fd.get(), 0, control_bytes(n_ranks));
  return std::shared_ptr<Segment>(new Segment(std::move(fd), std::move(region)));
}

Header& Segment::header() const { return *static_cast<Header*>(region_.data()); }

RankBlock& Segment::block(uint32_t rank) const {
  NETCL_CHECK(rank < n_ranks(), ErrorCode::kInternal, "no rank ", rank, " in a group of ",
              n_ranks());
  return reinterpret_cast<RankBlock*>(&header() + 1)[rank];
}

uint32_t Segment::n_ranks() const { return header().n_ranks; }

bool Segment::abort(std::string_view reason) {
  Header& h = header();
  uint32_t expected = kRunning;
  const bool first = h.abort_state.compare_exchange_strong(expected, kAborting);
  if (first) {
    h.abort_reason.store_text(reason.empty() ? "no reason given" : reason);
    h.abort_state.store(kAborted, std::memory_order_release);
  }
  h.bell.fetch_add(1);
  futex_wake_all(h.bell);
  return first;
}

void Segment::request_stop() { header().stop_requested.store(1, std::memory_order_release); }

bool Segment::stop_requested() const {
  return header().stop_requested.load(std::memory_order_acquire) != 0;
}

void Segment::set_stop_step(int64_t step) {
  header().stop_step_plus_1.store(step + 1, std::memory_order_release);
}

int64_t Segment::stop_step() const {
  return header().stop_step_plus_1.load(std::memory_order_acquire) - 1;
}

void Segment::announce(Due what, int64_t step) {
  header().due_step_plus_1[static_cast<uint32_t>(what)].store(step + 1, std::memory_order_release);
}

int64_t Segment::announced(Due what) const {
  const auto& due = header().due_step_plus_1[static_cast<uint32_t>(what)];
  return due.load(std::memory_order_acquire) - 1;
}

std::optional<std::string> Segment::aborted() const {
  const Header& h = header();
  if (h.abort_state.load(std::memory_order_acquire) == kRunning) return std::nullopt;
  // The writer is between its two stores, unless it was killed there: give it a moment.
  for (int i = 0; i < 1000 && h.abort_state.load(std::memory_order_acquire) == kAborting; ++i) {
    sched_yield();
  }
  std::string reason = h.abort_reason.load_text();
  return reason.empty() ? "aborted by a worker that died before it said why" : reason;
}

void Segment::set_identity(uint32_t rank, int64_t pid, std::string_view device) {
  RankBlock& b = block(rank);
  b.pid.store(pid, std::memory_order_relaxed);
  b.device.store_text(device);
  tick(rank);
}

void Segment::set_phase(uint32_t rank, std::string_view phase) {
  block(rank).phase.store_text(phase);
  tick(rank);
}

void Segment::set_step(uint32_t rank, int64_t step) {
  block(rank).step.store(step, std::memory_order_relaxed);
  tick(rank);
}

void Segment::set_collective(uint32_t rank, const CollectiveNote& note) {
  block(rank).collective.store(&note, sizeof(note));
  tick(rank);
}

void Segment::tick(uint32_t rank) {
  RankBlock& b = block(rank);
  b.heartbeat_ns.store(monotonic_ns(), std::memory_order_relaxed);
  b.ticks.fetch_add(1, std::memory_order_release);
}

void Segment::record(uint32_t rank, std::string_view text) {
  RankBlock& b = block(rank);
  const uint64_t number = b.n_events.load(std::memory_order_relaxed);
  FlightRecord& e = b.flight[number % kFlightEvents];
  e.time_ns.store(monotonic_ns(), std::memory_order_relaxed);
  e.number.store(number, std::memory_order_relaxed);
  e.text.store_text(text);
  b.n_events.store(number + 1, std::memory_order_release);
}

RankState Segment::state(uint32_t rank) const {
  const RankBlock& b = block(rank);
  RankState s;
  s.ticks = b.ticks.load(std::memory_order_acquire);
  s.heartbeat_ns = b.heartbeat_ns.load(std::memory_order_relaxed);
  s.pid = b.pid.load(std::memory_order_relaxed);
  s.step = b.step.load(std::memory_order_relaxed);
  s.device = b.device.load_text();
  s.phase = b.phase.load_text();
  b.collective.load(&s.collective);
  s.collective.name[sizeof(s.collective.name) - 1] = '\0';
  return s;
}

std::vector<FlightEvent> Segment::flight(uint32_t rank) const {
  const RankBlock& b = block(rank);
  const uint64_t end = b.n_events.load(std::memory_order_acquire);
  std::vector<FlightEvent> events;
  for (uint64_t i = end > kFlightEvents ? end - kFlightEvents : 0; i < end; ++i) {
    const FlightRecord& e = b.flight[i % kFlightEvents];
    events.push_back({e.time_ns.load(std::memory_order_relaxed),
                      e.number.load(std::memory_order_relaxed), e.text.load_text()});
  }
  return events;
}

}  // namespace netcl
