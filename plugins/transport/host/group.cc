#include "plugins/transport/host/group.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "plugins/transport/host/reduce.h"
#include "plugins/transport/host/run.h"

namespace netcl::host_transport {

using plugin::Failure;
using plugin::Host;

namespace {

constexpr uint64_t kCpuChunkBytes = 256 * 1024;
constexpr uint64_t kBusChunkBytes = 2 * 1024 * 1024;

// What the ranks compare when the group opens.
struct Hello {
  uint32_t layout, n_ranks;
  uint64_t chunk_bytes;
};
constexpr uint32_t kLayout = 1;

}  // namespace

HostGroup::HostGroup(const Host& host, const netcl_group_spec& spec, const Options& options)
    : rank_(spec.rank), n_ranks_(spec.n_ranks), timeout_ns_(spec.timeout_ns), boot_(spec.boot) {
  const bool is_cpu = host.device_int(spec.device, "is_cpu") != 0;
  const bool unified = host.device_int(spec.device, "unified_memory") != 0;
  agree_on_chunks(host, options, is_cpu);
  // One piece of memory: the shared state, then a probe area for each rank.
  const uint64_t state_bytes = Bucket::rounded(SharedState::size_bytes(n_ranks_));
  void* memory = nullptr;
  plugin::check(
      host.table()->boot_shared(host.call(), boot_, state_bytes + n_ranks_ * kProbeBytes, &memory),
      "boot_shared");
  shared_ = static_cast<SharedState*>(memory);
  open_queue(host, spec);
  try {
    if (unified && options.allow_zero_copy) {
      const std::string problem =
          probe_zero_copy(cl_, static_cast<char*>(memory) + state_bytes + rank_ * kProbeBytes);
      zero_copy_ = problem.empty();
      host.log(NETCL_LOG_INFO, zero_copy_ ? "host transport: zero copy"
                                          : "host transport: staging, because " + problem);
    } else {
      host.log(NETCL_LOG_INFO, "host transport: staging");
    }
    progress_ = std::thread([this] { progress_loop(); });
  } catch (...) {
    clReleaseCommandQueue(cl_.queue);
    throw;
  }
}

void HostGroup::agree_on_chunks(const Host& host, const Options& options, bool is_cpu) {
  Hello mine{kLayout, n_ranks_, options.chunk_bytes};
  if (mine.chunk_bytes == 0) mine.chunk_bytes = is_cpu ? kCpuChunkBytes : kBusChunkBytes;
  std::vector<Hello> all(n_ranks_);
  plugin::check(host.table()->boot_exchange(host.call(), boot_, &mine, sizeof(mine), all.data()),
                "boot_exchange");
  for (uint32_t r = 0; r < n_ranks_; ++r) {
    if (all[r].layout != kLayout || all[r].n_ranks != n_ranks_) {
      throw Failure(NETCL_E_STATE, "host transport: rank " + std::to_string(r) +
                                       " runs another version of the transport");
    }
    chunk_bytes_ = std::max(chunk_bytes_, all[r].chunk_bytes);
  }
  // Whole cache lines, also of 8-byte elements.
  chunk_bytes_ = (chunk_bytes_ + 63) / 64 * 64;
}

void HostGroup::open_queue(const Host& host, const netcl_group_spec& spec) {
  void *platform = nullptr, *device = nullptr, *context = nullptr;
  plugin::check(host.table()->device_cl(host.call(), spec.device, &platform, &device, &context),
                "device_cl");
  cl_.device = static_cast<cl_device_id>(device);
  cl_.context = static_cast<cl_context>(context);
  cl_int code = CL_SUCCESS;
  cl_.queue = clCreateCommandQueue(cl_.context, cl_.device, 0, &code);
  check_cl(code, "clCreateCommandQueue");
}

HostGroup::~HostGroup() {
  bool unfinished = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
    unfinished = completed_ + 1 < next_sequence_ && !problem_;
  }
  if (unfinished) give_up({NETCL_E_CANCELLED, "the rank closed the group with work unfinished"});
  stop_.store(true);
  posted_changed_.notify_all();
  shared_->ring();
  progress_.join();
  for (const Posted& p : posted_) {
    if (p.ready != nullptr) clReleaseEvent(p.ready);
  }
  clFinish(cl_.queue);  // after an error copies may still run into the slots
  buckets_.clear();
  clReleaseCommandQueue(cl_.queue);
}

void HostGroup::bucket_new(const Host& host, uint64_t bytes, netcl_bucket* out) {
  void* memory = nullptr;
  plugin::check(
      host.table()->boot_shared(host.call(), boot_, Bucket::shared_bytes(bytes, n_ranks_), &memory),
      "boot_shared");
  auto bucket = std::make_unique<Bucket>(cl_, bytes, rank_, n_ranks_, zero_copy_, memory);
  out->handle = bucket.get();
  out->send = bucket->send();
  out->recv = bucket->recv();
  out->bytes = bytes;
  buckets_.push_back(std::move(bucket));
}

void HostGroup::bucket_free(netcl_bucket* bucket) noexcept {
  const auto it =
      std::find_if(buckets_.begin(), buckets_.end(),
                   [&](const std::unique_ptr<Bucket>& b) { return b.get() == bucket->handle; });
  if (it == buckets_.end()) return;
  {
    // Posted collectives may use it: they end first, by completion or by failing.
    std::unique_lock<std::mutex> lock(mutex_);
    const uint64_t last = next_sequence_ - 1;
    completed_changed_.wait(
        lock, [&] { return !running_ && (completed_ >= last || problem_.has_value()); });
  }
  clFinish(cl_.queue);
  buckets_.erase(it);
  bucket->handle = bucket->send = bucket->recv = nullptr;
}

void HostGroup::check_posted(const netcl_coll& c) const {
  const auto refuse = [&](const std::string& why) {
    throw Failure(NETCL_E_ARG, "host transport: collective \"" + std::string(plugin::view(c.name)) +
                                   "\": " + why);
  };
  if (c.kind == NETCL_BARRIER) return;
  if (c.kind != NETCL_ALL_REDUCE && c.kind != NETCL_BROADCAST) {
    refuse("kind " + std::to_string(c.kind) + " is not known");
  }
  const size_t size = element_bytes(c.dtype);
  if (size == 0) refuse("dtype " + std::to_string(c.dtype) + " is not known");
  if (c.kind == NETCL_ALL_REDUCE && !can_reduce(c.dtype, c.redop)) {
    refuse("reduces f32, i32 and i64 by sum, max, min and prod only");
  }
  if (c.kind == NETCL_BROADCAST && c.root >= n_ranks_) {
    refuse("root " + std::to_string(c.root) + " of " + std::to_string(n_ranks_) + " ranks");
  }
  if (c.bucket == nullptr || c.bucket->handle == nullptr) refuse("has no bucket");
  const uint64_t bytes = static_cast<const Bucket*>(c.bucket->handle)->bytes();
  if (c.offset_bytes % size != 0 || c.offset_bytes > bytes ||
      c.count > (bytes - c.offset_bytes) / size) {
    refuse(std::to_string(c.count) + " elements of " + std::to_string(size) + " bytes at byte " +
           std::to_string(c.offset_bytes) + " do not lie in a bucket of " + std::to_string(bytes));
  }
}

uint64_t HostGroup::post(const Host& host, const netcl_coll& c) {
  check_posted(c);
  plugin::check(host.table()->boot_status(host.call(), boot_), "boot_status");
  Posted p;
  p.kind = c.kind;
  p.name = std::string(plugin::view(c.name));
  p.ready = static_cast<cl_event>(c.ready);
  if (c.kind != NETCL_BARRIER) {
    p.dtype = c.dtype;
    p.redop = c.kind == NETCL_ALL_REDUCE ? c.redop : 0;
    p.root = c.kind == NETCL_BROADCAST ? c.root : 0;
    p.offset_bytes = c.offset_bytes;
    p.count = c.count;
    p.element_bytes = element_bytes(c.dtype);
    p.bucket = static_cast<Bucket*>(c.bucket->handle);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (problem_) throw Failure(problem_->code, problem_->text);
  if (p.ready != nullptr) check_cl(clRetainEvent(p.ready), "clRetainEvent of `ready`");
  p.sequence = next_sequence_++;
  posted_.push_back(std::move(p));
  posted_changed_.notify_one();
  return next_sequence_ - 1;
}

void HostGroup::wait(const Host& host, uint64_t ticket) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (ticket == 0 || ticket >= next_sequence_) {
    throw Failure(NETCL_E_ARG,
                  "host transport: no collective has ticket " + std::to_string(ticket));
  }
  for (;;) {
    if (problem_ && problem_->code == NETCL_E_CANCELLED) {
      throw Failure(problem_->code, problem_->text);
    }
    if (completed_ >= ticket) return;
    lock.unlock();
    // First of all, because the host knows the cause where a peer sees a consequence.
    const netcl_rc rc = host.table()->boot_status(host.call(), boot_);
    if (rc != NETCL_OK) {
      // The peers hear of it from their own hosts, with the reason.
      give_up({rc, "the group was stopped by its host"}, false);
      throw plugin::Reported(rc, "boot_status");
    }
    lock.lock();
    if (completed_ < ticket && problem_) throw Failure(problem_->code, problem_->text);
    if (completed_ < ticket) {
      completed_changed_.wait_for(lock, std::chrono::milliseconds(1));
    }
  }
}

void HostGroup::abort(std::string_view reason) noexcept {
  give_up({NETCL_E_CANCELLED, "aborted: " + std::string(reason)});
}

void HostGroup::give_up(const Problem& problem, bool tell_peers) noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (problem_) return;
    problem_ = problem;
    if (tell_peers) {
      RankLine& own = *shared_->rank(rank_);
      const size_t n = std::min(problem.text.size(), sizeof(own.fault_text) - 1);
      std::memcpy(own.fault_text, problem.text.data(), n);
      own.fault_text[n] = '\0';
      own.fault.store(problem.code, std::memory_order_release);
    }
    stop_.store(true);
  }
  shared_->ring();
  posted_changed_.notify_all();
  completed_changed_.notify_all();
}

void HostGroup::progress_loop() {
  for (;;) {
    Posted posted;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      posted_changed_.wait(lock, [&] { return closing_ || problem_ || !posted_.empty(); });
      if (closing_ || problem_) return;
      posted = std::move(posted_.front());
      posted_.pop_front();
      running_ = true;
    }
    std::optional<Problem> failure;
    try {
      Run run(*this, posted);
      run();
      chunks_done_ += run.chunks();
    } catch (const Failure& e) {
      failure = Problem{e.code(), e.what()};
    } catch (const std::exception& e) {
      failure = Problem{NETCL_E_BUG, std::string("host transport: ") + e.what()};
    }
    if (failure) give_up(*failure);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      running_ = false;
      if (!failure) completed_ = posted.sequence;
    }
    completed_changed_.notify_all();
  }
}

}  // namespace netcl::host_transport
