#include "plugins/transport/host/run.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/abi/netcl_names.hpp"
#include "plugins/transport/host/reduce.h"

namespace netcl::host_transport {

using plugin::Failure;

namespace {

// Bytes of result that a reducing thread takes at a time, and from which on threads are woken.
constexpr uint64_t kPieceBytes = 64 * 1024, kThreadedBytes = 512 * 1024;
// Results of more bytes are written past the caches.
constexpr uint64_t kStreamBytes = 4 * 1024 * 1024;
constexpr uint64_t kLineBytes = 64;
constexpr uint64_t kAskHostNs = 1'000'000;

}  // namespace

HostGroup::Run::Run(HostGroup& group, const Collective& collective, const plugin::Host* host)
    : group_(group),
      coll_(collective),
      host_(host),
      shared_(*group.shared_),
      own_(*group.shared_->rank(group.rank_)),
      bucket_(collective.bucket),
      flow_(Flow::kSmall),
      chunk_elements_(1),
      n_chunks_(1),
      base_(group.chunks_done_),
      last_progress_ns_(now_ns()),
      last_asked_ns_(last_progress_ns_),
      in_(group.cl_.queue),
      out_(group.cl_.out) {
  if (!coll_.has_data()) return;
  given_ = coll_.given(group.rank_);
  gotten_ = coll_.gotten(group.rank_);
  device_copies_ = !bucket_->zero_copy();
  // Where a rank's results lie in the shared memory itself, all must be careful with it.
  const bool small = bucket_->small() || (coll_.bytes() <= kSmallBytes && !group.any_zero_copy_);
  if (small) {
    chunk_elements_ = coll_.count;
    return;
  }
  flow_ = Flow::kMove;
  if (coll_.reduces()) flow_ = group.reduces_on_devices(coll_) ? Flow::kExchange : Flow::kReduce;
  const uint64_t chunk_bytes =
      flow_ == Flow::kExchange ? group.exchange_chunk_bytes(coll_.bytes()) : group.chunk_bytes_;
  chunk_elements_ = std::max<uint64_t>(chunk_bytes / coll_.element_bytes, 1);
  n_chunks_ = (coll_.count + chunk_elements_ - 1) / chunk_elements_;
  stream_ = group.stream_.value_or(group.all_zero_copy_ && coll_.bytes() >= kStreamBytes);
  threaded_ = flow_ == Flow::kReduce && group.reducers_->size() > 0 &&
              (coll_.bytes() >= kThreadedBytes || n_chunks_ > 1);
  if (!threaded_) return;
  const uint64_t longest = share(0).count * coll_.element_bytes;
  pieces_per_chunk_ = std::max<uint64_t>((longest + kPieceBytes - 1) / kPieceBytes, 1);
  pieces_done_ = std::vector<std::atomic<uint32_t>>(n_chunks_);
}

HostGroup::Run::~Run() {
  // Only after an error are they still mapped.
  unmap_buffers(nullptr);
  if (coll_.ready != nullptr) clReleaseEvent(coll_.ready);
}

void HostGroup::Run::operator()() {
  start();
  // The reducers use this object: they leave it before anything is thrown out of here.
  struct Finish {
    Reducers* reducers;
    std::atomic<bool>* stop;
    ~Finish() {
      if (reducers == nullptr) return;
      if (std::uncaught_exceptions() > 0) stop->store(true);
      reducers->finish();
    }
  } finish{threaded_ ? group_.reducers_.get() : nullptr, &group_.stop_};
  if (threaded_) group_.reducers_->start(this);
  while (n_output_ < n_chunks_) {
    bool moved = copy_in();
    moved |= place();
    moved |= copy_out();
    if (moved) {
      last_progress_ns_ = now_ns();
    } else {
      idle();
    }
  }
  cl_event unmapped = nullptr;
  unmap_buffers(&unmapped);
  if (unmapped != nullptr) {
    const cl_int code = clWaitForEvents(1, &unmapped);
    clReleaseEvent(unmapped);
    check_cl(code, "handing over the result");
  }
  out_.wait_all();
}

void HostGroup::Run::start() {
  coll_.announce(shared_, group_.rank_, group_.n_ranks_);
  const bool reads_device = coll_.has_data() && device_copies_ && flow_ != Flow::kMove;
  if (coll_.has_data() && !device_copies_) {
    map_buffers();
  } else if (coll_.ready != nullptr && (!reads_device || given_.count == 0)) {
    check_cl(clWaitForEvents(1, &coll_.ready), "clWaitForEvents of `ready`");
  }
  // Without copies from the device everything can be read at once.
  if (!reads_device || given_.count == 0) publish(n_chunks_);
}

void HostGroup::Run::map_buffers() {
  cl_command_queue queue = group_.cl_.queue;
  const cl_uint n_wait = coll_.ready == nullptr ? 0 : 1;
  const cl_event* wait_list = n_wait == 0 ? nullptr : &coll_.ready;
  cl_int code = CL_SUCCESS;
  mapped_recv_ =
      clEnqueueMapBuffer(queue, bucket_->recv(), CL_FALSE, CL_MAP_WRITE, coll_.offset_bytes,
                         coll_.bytes(), n_wait, wait_list, nullptr, &code);
  check_cl(code, "clEnqueueMapBuffer of the result");
  mapped_send_ =
      clEnqueueMapBuffer(queue, bucket_->send(), CL_TRUE, CL_MAP_READ, coll_.offset_bytes,
                         coll_.bytes(), n_wait, wait_list, nullptr, &code);
  check_cl(code, "clEnqueueMapBuffer of the contribution");
}

void HostGroup::Run::unmap_buffers(cl_event* done) {
  cl_command_queue queue = group_.cl_.queue;
  cl_int code = CL_SUCCESS;
  if (mapped_send_ != nullptr) {
    code = clEnqueueUnmapMemObject(queue, bucket_->send(), std::exchange(mapped_send_, nullptr), 0,
                                   nullptr, nullptr);
  }
  if (mapped_recv_ != nullptr) {
    const cl_int second = clEnqueueUnmapMemObject(
        queue, bucket_->recv(), std::exchange(mapped_recv_, nullptr), 0, nullptr, done);
    if (code == CL_SUCCESS) code = second;
  }
  if (done != nullptr) check_cl(code, "clEnqueueUnmapMemObject");
}

// ---- to the host

bool HostGroup::Run::copy_in() {
  bool moved = false;
  if (device_copies_ && given_.count > 0 && flow_ == Flow::kSmall && n_started_ == 0) {
    in_.read(bucket_->send(), offset(given_.first), given_.count * coll_.element_bytes,
             slot(group_.rank_, given_.first), coll_.ready);
    ++n_started_;
  }
  const bool moves = flow_ == Flow::kMove && device_copies_ && checked_.load();
  const bool contributes =
      (flow_ == Flow::kReduce || flow_ == Flow::kExchange) && device_copies_ && given_.count > 0;
  while ((moves || contributes) && n_started_ < n_chunks_ &&
         n_started_ < n_placed_ + kCopiesAhead) {
    const Range part = chunk(n_started_).cut(given_);
    if (part.count == 0) {
      in_.nothing();
    } else {
      in_.read(bucket_->send(), offset(part.first), part.count * coll_.element_bytes,
               moves ? result(part.first) : slot(group_.rank_, part.first),
               n_started_ == 0 ? coll_.ready : nullptr);
    }
    ++n_started_;
    moved = true;
  }
  while (in_.oldest_done()) {
    if (flow_ == Flow::kMove) {
      set_placed(n_placed_ + 1);
    } else {
      publish(n_published_ + 1);
    }
    moved = true;
  }
  return moved;
}

void HostGroup::Run::publish(uint64_t chunks) {
  n_published_ = chunks;
  own_.published.store(base_ + chunks, std::memory_order_release);
  shared_.ring();
}

// ---- shares into the result

bool HostGroup::Run::all_published(uint64_t chunk) const {
  for (uint32_t r = 0; r < group_.n_ranks_; ++r) {
    if (shared_.rank(r)->published.load(std::memory_order_acquire) <= base_ + chunk) return false;
  }
  return true;
}

bool HostGroup::Run::all_placed(uint64_t chunk) const {
  for (uint32_t r = 0; r < group_.n_ranks_; ++r) {
    if (shared_.rank(r)->placed.load(std::memory_order_acquire) <= base_ + chunk) return false;
  }
  return true;
}

bool HostGroup::Run::can_place() const {
  if (n_placed_ >= n_published_) return false;
  if (!checked_.load(std::memory_order_relaxed)) return all_published(0);
  if (flow_ == Flow::kMove) return !device_copies_;
  if (flow_ == Flow::kExchange) return can_exchange();
  if (threaded_) {
    return pieces_done_[n_placed_].load(std::memory_order_acquire) == pieces_per_chunk_;
  }
  return all_published(n_placed_);
}

bool HostGroup::Run::can_exchange() const {
  return n_exchanged_ < n_published_ && n_exchanged_ < n_placed_ + kCopiesAhead &&
         all_published(n_exchanged_);
}

// A rank's own chunk has left its device when it is published, so the result may take its place;
// the others' slots have been read when the device has reduced them.
bool HostGroup::Run::exchange() {
  bool moved = false;
  for (; can_exchange(); ++n_exchanged_, moved = true) {
    const Range part = chunk(n_exchanged_).cut(gotten_);
    if (part.count == 0) {
      out_.nothing();
      continue;
    }
    DeviceReducer::Part p{coll_.dtype,
                          coll_.redop,
                          bucket_->recv(),
                          offset(part.first),
                          part.count,
                          coll_.element_bytes,
                          {},
                          weights_.empty() ? nullptr : weights_.data()};
    for (uint32_t r = 0; r < group_.n_ranks_; ++r) p.peers.push_back(slot(r, part.first));
    out_.add(group_.device_reducer_->reduce(n_exchanged_, p));
  }
  for (; out_.oldest_done(); moved = true) set_placed(n_placed_ + 1);
  return moved;
}

bool HostGroup::Run::place() {
  if (flow_ == Flow::kExchange && checked_.load(std::memory_order_relaxed)) return exchange();
  if (!can_place()) return false;
  if (!checked_.load(std::memory_order_relaxed)) {
    compare_descriptors(shared_, group_.n_ranks_, coll_.sequence);
    for (uint32_t r = 0; coll_.redop == NETCL_MEAN && r < group_.n_ranks_; ++r) {
      weights_.push_back(shared_.rank(r)->descriptor[coll_.sequence % 2].weight);
    }
    checked_.store(true, std::memory_order_release);
    if (threaded_) shared_.ring();
    return true;
  }
  if (flow_ == Flow::kSmall) {
    place_small();
  } else if (!threaded_) {
    place_chunk(n_placed_);
  }
  set_placed(n_placed_ + 1);
  return true;
}

void HostGroup::Run::place_small() {
  if (!coll_.has_data() || gotten_.count == 0) return;
  if (coll_.reduces()) return reduce_range(gotten_);
  for (uint32_t r = 0; r < group_.n_ranks_; ++r) {
    const Range part = coll_.given(r).cut(gotten_);
    if (part.count == 0) continue;
    std::memcpy(result(part.first), slot(r, part.first), part.count * coll_.element_bytes);
  }
}

void HostGroup::Run::place_chunk(uint64_t index) {
  if (flow_ == Flow::kReduce) return reduce_range(share(index));
  const Range part = chunk(index).cut(given_);
  if (part.count == 0) return;
  std::memcpy(result(part.first), slot(group_.rank_, part.first), part.count * coll_.element_bytes);
}

void HostGroup::Run::reduce_range(Range range) {
  if (range.count == 0) return;
  std::vector<const void*> inputs;
  for (uint32_t r = 0; r < group_.n_ranks_; ++r) inputs.push_back(slot(r, range.first));
  ReduceOptions options;
  options.weights = weights_.empty() ? nullptr : weights_.data();
  options.stream = stream_;
  host_transport::reduce(coll_.dtype, coll_.redop, inputs.data(), group_.n_ranks_,
                         result(range.first), range.count, options);
}

void HostGroup::Run::set_placed(uint64_t chunks) {
  n_placed_ = chunks;
  own_.placed.store(base_ + chunks, std::memory_order_release);
  if (flow_ != Flow::kSmall) shared_.ring();
}

bool HostGroup::Run::wait_for(uint64_t piece) {
  const uint64_t index = piece / pieces_per_chunk_;
  const uint64_t start = now_ns();
  for (;;) {
    const uint32_t bell = shared_.bell.load();
    if (group_.stop_.load()) return false;
    if (checked_.load(std::memory_order_acquire) && all_published(index)) return true;
    if (now_ns() - start < group_.spin_ns_) {
      relax();
    } else {
      shared_.sleep(bell, 20'000'000);  // whoever stops the group rings
    }
  }
}

void HostGroup::Run::reduce(uint64_t piece) {
  const uint64_t index = piece / pieces_per_chunk_;
  const uint64_t elements = kPieceBytes / coll_.element_bytes;
  const Range whole = share(index);
  reduce_range(whole.cut({whole.first + piece % pieces_per_chunk_ * elements, elements}));
  const uint32_t done = pieces_done_[index].fetch_add(1, std::memory_order_acq_rel) + 1;
  if (done == pieces_per_chunk_) shared_.ring();
}

// ---- to the device

bool HostGroup::Run::can_copy_out() const {
  return n_output_ < n_placed_ && (flow_ == Flow::kSmall || all_placed(n_output_));
}

bool HostGroup::Run::copy_out() {
  bool moved = false;
  while (can_copy_out()) {
    const Range part = chunk(n_output_).cut(gotten_);
    if (device_copies_ && flow_ != Flow::kExchange && part.count > 0) {
      out_.write(bucket_->recv(), offset(part.first), part.count * coll_.element_bytes,
                 result(part.first));
    }
    ++n_output_;
    moved = true;
  }
  return moved;
}

// ---- places

Range HostGroup::Run::chunk(uint64_t index) const {
  const uint64_t first = index * chunk_elements_;
  return Range{first, chunk_elements_}.cut({0, coll_.count});
}

Range HostGroup::Run::share(uint64_t index) const {
  const Range whole = chunk(index);
  // Shares begin at cache lines, so that two ranks hardly ever write one line.
  const uint64_t line = std::max<uint64_t>(kLineBytes / coll_.element_bytes, 1);
  const auto begin = [&](uint32_t rank) {
    const uint64_t at = whole.count * group_.shares_[rank] / group_.shares_.back();
    return std::min((at + line - 1) / line * line, whole.count);
  };
  const uint64_t lo = begin(group_.rank_), hi = begin(group_.rank_ + 1);
  return {whole.first + lo, hi - lo};
}

char* HostGroup::Run::slot(uint32_t rank, uint64_t element) const {
  if (flow_ == Flow::kSmall) {
    return group_.small_->stage(rank, coll_.sequence) + element * coll_.element_bytes;
  }
  return bucket_->slot(rank) + offset(element);
}

char* HostGroup::Run::result(uint64_t element) const {
  if (flow_ == Flow::kSmall) return group_.small_->result() + element * coll_.element_bytes;
  return bucket_->result() + offset(element);
}

uint64_t HostGroup::Run::offset(uint64_t element) const {
  return coll_.offset_bytes + element * coll_.element_bytes;
}

// ---- waiting

void HostGroup::Run::check_peers() const {
  if (group_.stop_.load()) throw Failure(NETCL_E_CANCELLED, "host transport: the group is stopped");
  for (uint32_t r = 0; r < group_.n_ranks_; ++r) {
    const uint32_t code = shared_.rank(r)->fault.load(std::memory_order_acquire);
    if (code == NETCL_OK) continue;
    const bool speaks_for_all = code == NETCL_E_STATE || code == NETCL_E_TIMEOUT;
    throw Failure(speaks_for_all ? code : static_cast<netcl_rc>(NETCL_E_PEER),
                  "rank " + std::to_string(r) + " gave up: " + shared_.rank(r)->fault_text);
  }
}

void HostGroup::Run::idle() {
  const uint32_t bell = shared_.bell.load();
  check_peers();
  if (can_place() || can_copy_out()) return;
  const uint64_t now = now_ns(), waited = now - last_progress_ns_;
  const bool reducing = flow_ == Flow::kExchange && out_.in_flight() > 0;
  if (in_.in_flight() > 0) {
    // Nothing else to do before this copy is there: let the driver wait.
    if (n_placed_ == n_published_ && n_output_ == n_placed_ && (group_.is_cpu_ || n_output_ == 0)) {
      return in_.wait_oldest();
    }
  } else if (!reducing && waited > group_.timeout_ns_) {
    report_late();
  }
  if (waited < group_.spin_ns_) return relax();
  if (host_ != nullptr && now - last_asked_ns_ > kAskHostNs) {
    last_asked_ns_ = now;
    group_.ask_host(*host_);
  }
  shared_.sleep(bell, in_.in_flight() > 0 || reducing ? 50'000 : 1'000'000);
}

void HostGroup::Run::report_late() const {
  const bool for_shares = n_output_ < n_placed_ && !all_placed(n_output_);
  const uint64_t needed = base_ + (for_shares ? n_output_ : n_placed_) + 1;
  std::string late;
  for (uint32_t r = 0; r < group_.n_ranks_; ++r) {
    const RankLine& line = *shared_.rank(r);
    const auto& counter = for_shares ? line.placed : line.published;
    if (counter.load(std::memory_order_acquire) >= needed) continue;
    late += (late.empty() ? "" : ", ") + std::to_string(r);
  }
  throw Failure(NETCL_E_TIMEOUT, "host transport: rank " + std::to_string(group_.rank_) +
                                     " waited " + std::to_string(group_.timeout_ns_ / 1'000'000u) +
                                     " ms in " + plugin::collective_name(coll_.kind) + " \"" +
                                     coll_.name + "\" (number " + std::to_string(coll_.sequence) +
                                     ") for rank " + late +
                                     "; look at what it does, or allow more time");
}

}  // namespace netcl::host_transport
