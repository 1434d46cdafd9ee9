#include "plugins/transport/host/run.h"

#include <algorithm>
#include <cstring>

#include "plugins/transport/host/reduce.h"

namespace netcl::host_transport {

using plugin::Failure;

namespace {

const char* kind_name(uint32_t kind) {
  switch (kind) {
    case NETCL_ALL_REDUCE:
      return "all_reduce";
    case NETCL_BROADCAST:
      return "broadcast";
    case NETCL_BARRIER:
      return "barrier";
    default:
      return "unknown collective";
  }
}

std::string dtype_name(uint32_t dtype) {
  static constexpr const char* kNames[] = {"none", "f32", "f16", "bf16",
                                           "i32",  "i64", "u8",  "bool"};
  return dtype <= NETCL_BOOL ? kNames[dtype] : "dtype " + std::to_string(dtype);
}

std::string redop_name(uint32_t redop) {
  static constexpr const char* kNames[] = {"none", "sum", "max", "min", "prod"};
  return redop <= NETCL_PROD ? kNames[redop] : "op " + std::to_string(redop);
}

bool same(const Descriptor& a, const Descriptor& b) {
  return a.sequence == b.sequence && a.bucket_bytes == b.bucket_bytes &&
         a.offset_bytes == b.offset_bytes && a.count == b.count && a.kind == b.kind &&
         a.dtype == b.dtype && a.redop == b.redop && a.root == b.root &&
         std::strncmp(a.name, b.name, sizeof(a.name)) == 0;
}

}  // namespace

HostGroup::Run::Run(HostGroup& group, const Posted& posted)
    : group_(group),
      posted_(posted),
      shared_(*group.shared_),
      own_(*group.shared_->rank(group.rank_)),
      last_progress_ns_(now_ns()),
      spins_(spin_budget(group.n_ranks_)) {
  const bool has_data = posted.bucket != nullptr && posted.count > 0;
  single_wave_ = !has_data || posted.bucket->small();
  copies_out_ = has_data && !posted.bucket->zero_copy();
  chunk_elements_ = has_data ? std::max<uint64_t>(group.chunk_bytes_ / posted.element_bytes, 1) : 1;
  n_chunks_ = has_data ? (posted.count + chunk_elements_ - 1) / chunk_elements_ : 1;
  base_ = group.chunks_done_;
}

HostGroup::Run::~Run() {
  for (cl_event e : input_events_) {
    if (e != nullptr) clReleaseEvent(e);
  }
  if (last_output_ != nullptr) clReleaseEvent(last_output_);
  if (posted_.ready != nullptr) clReleaseEvent(posted_.ready);
  // Only after an error are they still mapped.
  if (mapped_send_ != nullptr) {
    clEnqueueUnmapMemObject(group_.cl_.queue, posted_.bucket->send(), mapped_send_, 0, nullptr,
                            nullptr);
  }
  if (mapped_recv_ != nullptr) {
    clEnqueueUnmapMemObject(group_.cl_.queue, posted_.bucket->recv(), mapped_recv_, 0, nullptr,
                            nullptr);
  }
}

void HostGroup::Run::operator()() {
  announce();
  start_input();
  while (n_output_ < n_chunks_) {
    if (advance()) {
      last_progress_ns_ = now_ns();
    } else {
      idle();
    }
  }
  finish_output();
}

void HostGroup::Run::announce() {
  Descriptor d{};
  d.sequence = posted_.sequence;
  d.bucket_bytes = posted_.bucket == nullptr ? 0 : posted_.bucket->bytes();
  d.offset_bytes = posted_.offset_bytes;
  d.count = posted_.count;
  d.kind = posted_.kind;
  d.dtype = posted_.dtype;
  d.redop = posted_.redop;
  d.root = posted_.root;
  std::memcpy(d.name, posted_.name.data(), std::min(posted_.name.size(), sizeof(d.name) - 1));
  own_.descriptor[posted_.sequence % 2] = d;
}

void HostGroup::Run::start_input() {
  const Bucket* bucket = posted_.bucket;
  const cl_uint n_wait = posted_.ready == nullptr ? 0 : 1;
  const cl_event* wait_list = n_wait == 0 ? nullptr : &posted_.ready;
  const bool contributes = posted_.kind == NETCL_ALL_REDUCE ||
                           (posted_.kind == NETCL_BROADCAST && posted_.root == group_.rank_);
  const uint64_t bytes = posted_.count * posted_.element_bytes;
  if (bucket == nullptr || bytes == 0 || (!contributes && !bucket->zero_copy())) {
    if (n_wait != 0) check_cl(clWaitForEvents(1, wait_list), "clWaitForEvents of `ready`");
    return;
  }
  cl_command_queue queue = group_.cl_.queue;
  if (bucket->zero_copy()) {
    cl_int code = CL_SUCCESS;
    mapped_recv_ =
        clEnqueueMapBuffer(queue, bucket->recv(), CL_FALSE, CL_MAP_WRITE, posted_.offset_bytes,
                           bytes, n_wait, wait_list, nullptr, &code);
    check_cl(code, "clEnqueueMapBuffer of the result");
    mapped_send_ =
        clEnqueueMapBuffer(queue, bucket->send(), CL_TRUE, CL_MAP_READ, posted_.offset_bytes, bytes,
                           n_wait, wait_list, nullptr, &code);
    check_cl(code, "clEnqueueMapBuffer of the contribution");
    return;
  }
  char* slot = bucket->slot(group_.rank_, posted_.sequence) + posted_.offset_bytes;
  input_events_.assign(n_chunks_, nullptr);
  for (uint64_t c = 0; c < n_chunks_; ++c) {
    const Slice s = chunk_elements(c);
    const uint64_t start = s.first * posted_.element_bytes;
    check_cl(clEnqueueReadBuffer(queue, bucket->send(), CL_FALSE, posted_.offset_bytes + start,
                                 s.count * posted_.element_bytes, slot + start, c == 0 ? n_wait : 0,
                                 c == 0 ? wait_list : nullptr, &input_events_[c]),
             "clEnqueueReadBuffer of the contribution");
  }
  check_cl(clFlush(queue), "clFlush");
}

bool HostGroup::Run::input_done(uint64_t chunk) {
  if (input_events_.empty()) return true;
  cl_event event = input_events_[chunk];
  cl_int status = CL_QUEUED;
  check_cl(
      clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr),
      "clGetEventInfo");
  if (status < 0) check_cl(status, "copying the contribution to the host");
  if (status == CL_COMPLETE) return true;
  // Nothing else to do before this copy is there: let the driver wait.
  const bool idle_otherwise = n_reduced_ == chunk && n_output_ == chunk;
  if (!idle_otherwise) return false;
  check_cl(clWaitForEvents(1, &event), "copying the contribution to the host");
  return true;
}

void HostGroup::Run::publish(uint64_t chunk) {
  own_.published.store(base_ + chunk + 1, std::memory_order_release);
  shared_.ring();
}

bool HostGroup::Run::all_at_least(bool reduced, uint64_t value) const {
  for (uint32_t r = 0; r < group_.n_ranks_; ++r) {
    const RankLine& line = *shared_.rank(r);
    const auto& counter = reduced ? line.reduced : line.published;
    if (counter.load(std::memory_order_acquire) < value) return false;
  }
  return true;
}

std::string HostGroup::Run::describe(uint32_t rank) const {
  const Descriptor& d = shared_.rank(rank)->descriptor[posted_.sequence % 2];
  std::string text = "rank " + std::to_string(rank) + " posts " + kind_name(d.kind) + " \"" +
                     d.name + "\" (number " + std::to_string(d.sequence);
  if (d.kind == NETCL_ALL_REDUCE) text += ", " + redop_name(d.redop);
  if (d.kind == NETCL_BROADCAST) text += ", root " + std::to_string(d.root);
  if (d.kind != NETCL_BARRIER) {
    text += ", " + dtype_name(d.dtype) + ", " + std::to_string(d.count) + " elements at byte " +
            std::to_string(d.offset_bytes) + " of " + std::to_string(d.bucket_bytes);
  }
  return text + ")";
}

void HostGroup::Run::check_descriptors() {
  checked_ = true;
  const Descriptor& first = shared_.rank(0)->descriptor[posted_.sequence % 2];
  for (uint32_t r = 1; r < group_.n_ranks_; ++r) {
    if (same(first, shared_.rank(r)->descriptor[posted_.sequence % 2])) continue;
    throw Failure(NETCL_E_STATE,
                  "host transport: the ranks' collectives differ: " + describe(0) + " but " +
                      describe(r) + "; all ranks must post the same collectives in the same order");
  }
}

HostGroup::Run::Slice HostGroup::Run::chunk_elements(uint64_t chunk) const {
  const uint64_t first = chunk * chunk_elements_;
  return {first, std::min(chunk_elements_, posted_.count - first)};
}

void HostGroup::Run::reduce_chunk(uint64_t chunk) {
  if (posted_.bucket != nullptr && posted_.count > 0) {
    Slice s = chunk_elements(chunk);
    if (!single_wave_) {
      // Slices begin at cache lines, so that two ranks never write one line.
      const uint64_t line = std::max<uint64_t>(64 / posted_.element_bytes, 1);
      uint64_t part = (s.count + group_.n_ranks_ - 1) / group_.n_ranks_;
      part = (part + line - 1) / line * line;
      const uint64_t lo = std::min(group_.rank_ * part, s.count);
      s = {s.first + lo, std::min(part, s.count - lo)};
    }
    const uint64_t start = posted_.offset_bytes + s.first * posted_.element_bytes;
    char* out = posted_.bucket->result() + start;
    if (posted_.kind == NETCL_BROADCAST) {
      std::memcpy(out, posted_.bucket->slot(posted_.root, posted_.sequence) + start,
                  s.count * posted_.element_bytes);
    } else {
      std::vector<const void*> inputs;
      for (uint32_t r = 0; r < group_.n_ranks_; ++r) {
        inputs.push_back(posted_.bucket->slot(r, posted_.sequence) + start);
      }
      reduce(posted_.dtype, posted_.redop, inputs.data(), group_.n_ranks_, out, s.count);
    }
  }
  own_.reduced.store(base_ + chunk + 1, std::memory_order_release);
  if (!single_wave_) shared_.ring();
}

void HostGroup::Run::output_chunk(uint64_t chunk) {
  if (!copies_out_) return;
  const Slice s = chunk_elements(chunk);
  const uint64_t start = posted_.offset_bytes + s.first * posted_.element_bytes;
  if (last_output_ != nullptr) clReleaseEvent(last_output_);
  last_output_ = nullptr;
  check_cl(clEnqueueWriteBuffer(group_.cl_.queue, posted_.bucket->recv(), CL_FALSE, start,
                                s.count * posted_.element_bytes, posted_.bucket->result() + start,
                                0, nullptr, &last_output_),
           "clEnqueueWriteBuffer of the result");
  check_cl(clFlush(group_.cl_.queue), "clFlush");
}

void HostGroup::Run::finish_output() {
  cl_command_queue queue = group_.cl_.queue;
  if (mapped_send_ != nullptr) {
    check_cl(clEnqueueUnmapMemObject(queue, posted_.bucket->send(),
                                     std::exchange(mapped_send_, nullptr), 0, nullptr, nullptr),
             "clEnqueueUnmapMemObject of the contribution");
  }
  if (mapped_recv_ != nullptr) {
    check_cl(
        clEnqueueUnmapMemObject(queue, posted_.bucket->recv(), std::exchange(mapped_recv_, nullptr),
                                0, nullptr, &last_output_),
        "clEnqueueUnmapMemObject of the result");
  }
  // The queue is in order: with the last command everything is done.
  if (last_output_ != nullptr)
    check_cl(clWaitForEvents(1, &last_output_), "handing over the result");
}

bool HostGroup::Run::advance() {
  bool moved = false;
  while (n_published_ < n_chunks_ && input_done(n_published_)) {
    publish(n_published_++);
    moved = true;
    if (!input_events_.empty()) break;  // give reduction its turn between copies
  }
  if (n_reduced_ < n_published_ && all_at_least(false, base_ + n_reduced_ + 1)) {
    if (!checked_) check_descriptors();
    reduce_chunk(n_reduced_++);
    moved = true;
  }
  if (n_output_ < n_reduced_ && (single_wave_ || all_at_least(true, base_ + n_output_ + 1))) {
    output_chunk(n_output_++);
    moved = true;
  }
  return moved;
}

void HostGroup::Run::idle() {
  const uint32_t bell = shared_.bell.load();
  if (group_.stop_.load()) throw Failure(NETCL_E_CANCELLED, "host transport: the group is stopped");
  const bool can_move =
      (n_reduced_ < n_published_ && all_at_least(false, base_ + n_reduced_ + 1)) ||
      (n_output_ < n_reduced_ && (single_wave_ || all_at_least(true, base_ + n_output_ + 1)));
  if (can_move) return;
  for (uint32_t r = 0; r < group_.n_ranks_; ++r) {
    const uint32_t code = shared_.rank(r)->fault.load(std::memory_order_acquire);
    if (code == NETCL_OK) continue;
    const bool speaks_for_all = code == NETCL_E_STATE || code == NETCL_E_TIMEOUT;
    throw Failure(speaks_for_all ? code : static_cast<netcl_rc>(NETCL_E_PEER),
                  "rank " + std::to_string(r) + " gave up: " + shared_.rank(r)->fault_text);
  }
  if (spins_ > 0) {
    --spins_;
    return;
  }
  if (now_ns() - last_progress_ns_ > group_.timeout_ns_) report_late();
  shared_.sleep(bell, n_published_ < n_chunks_ ? 50'000 : 1'000'000);
}

void HostGroup::Run::report_late() const {
  const bool waits_for_slices =
      n_output_ < n_reduced_ && !all_at_least(true, base_ + n_output_ + 1);
  const uint64_t needed = base_ + (waits_for_slices ? n_output_ : n_reduced_) + 1;
  std::string late;
  for (uint32_t r = 0; r < group_.n_ranks_; ++r) {
    const RankLine& line = *shared_.rank(r);
    const auto& counter = waits_for_slices ? line.reduced : line.published;
    if (counter.load(std::memory_order_acquire) >= needed) continue;
    late += (late.empty() ? "" : ", ") + std::to_string(r);
  }
  throw Failure(NETCL_E_TIMEOUT, "host transport: rank " + std::to_string(group_.rank_) +
                                     " waited " + std::to_string(group_.timeout_ns_ / 1'000'000u) +
                                     " ms in " + kind_name(posted_.kind) + " \"" + posted_.name +
                                     "\" (number " + std::to_string(posted_.sequence) +
                                     ") for rank " + late +
                                     "; look at what it does, or allow more time");
}

}  // namespace netcl::host_transport
