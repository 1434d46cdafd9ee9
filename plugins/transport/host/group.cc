#include "plugins/transport/host/group.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "plugins/transport/host/run.h"

namespace netcl::host_transport {

using plugin::Failure;
using plugin::Host;

namespace {

constexpr uint64_t kCpuChunkBytes = 256 * 1024;
constexpr uint64_t kBusChunkBytes = 1024 * 1024;
constexpr uint32_t kMostReducers = 8;
// How long a wait looks before it sleeps.
constexpr uint64_t kCpuSpinNs = 20'000, kBusSpinNs = 200'000;

// What the ranks compare when the group opens.
struct Hello {
  uint32_t layout, n_ranks;
  uint64_t chunk_bytes;
  uint32_t zero_copy, threads, chunk_given;
};
constexpr uint32_t kLayout = 3;

}  // namespace

HostGroup::HostGroup(const Host& host, const netcl_group_spec& spec, const Options& options)
    : rank_(spec.rank),
      n_ranks_(spec.n_ranks),
      timeout_ns_(spec.timeout_ns),
      boot_(spec.boot),
      is_cpu_(host.device_int(spec.device, "is_cpu") != 0),
      stream_(options.stream) {
  open_queues(host, spec);
  try {
    set_up(host, spec, options);
    progress_ = std::thread([this] { progress_loop(); });
  } catch (...) {
    device_reducer_.reset();
    small_.reset();
    release_queues();
    throw;
  }
}

// Processors that the ranks may use, all together.
uint32_t HostGroup::all_processors(const Host& host) const {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof(mine), &mine);
  std::vector<cpu_set_t> all(n_ranks_);
  plugin::check(host.table()->boot_exchange(host.call(), boot_, &mine, sizeof(mine), all.data()),
                "boot_exchange");
  for (const cpu_set_t& set : all) CPU_OR(&mine, &mine, &set);
  return static_cast<uint32_t>(CPU_COUNT(&mine));
}

uint32_t HostGroup::default_reducers(uint32_t processors) const {
  // A processor that is a device computes on all its cores; they are not ours.
  if (is_cpu_) return 0;
  const uint32_t each = processors / n_ranks_;
  return each < 2 ? 0 : std::min(kMostReducers, each - 1);
}

void HostGroup::set_up(const Host& host, const netcl_group_spec& spec, const Options& options) {
  // One piece of memory: the shared state, the small area, then a probe area for each rank.
  const uint64_t state_bytes = page_rounded(SharedState::size_bytes(n_ranks_));
  const uint64_t small_bytes = SmallArea::size_bytes(n_ranks_);
  void* memory = nullptr;
  plugin::check(
      host.table()->boot_shared(host.call(), boot_,
                                state_bytes + small_bytes + n_ranks_ * kProbeBytes, &memory),
      "boot_shared");
  shared_ = static_cast<SharedState*>(memory);
  char* const base = static_cast<char*>(memory);
  const bool unified = host.device_int(spec.device, "unified_memory") != 0;
  char* const probed = base + state_bytes + small_bytes + rank_ * kProbeBytes;
  const StagingChoice choice = choose_staging(cl_, unified, options.way, probed);
  madvise(probed, kProbeBytes, MADV_REMOVE);  // the pages go back; nobody touches them again
  way_ = choice.way;
  small_ = std::make_unique<SmallArea>(cl_, rank_, way_ == Way::kRegistered, base + state_bytes);
  const uint32_t processors = all_processors(host);
  reducers_ = std::make_unique<Reducers>(options.reducers.value_or(default_reducers(processors)));
  // A spinning thread would else keep the awaited one from running.
  if (processors >= n_ranks_) spin_ns_ = is_cpu_ ? kCpuSpinNs : kBusSpinNs;

  Hello mine{kLayout,
             n_ranks_,
             options.chunk_bytes,
             way_ == Way::kZeroCopy ? 1u : 0u,
             std::max(reducers_->size(), 1u),
             options.chunk_bytes != 0 ? 1u : 0u};
  if (mine.chunk_bytes == 0) mine.chunk_bytes = is_cpu_ ? kCpuChunkBytes : kBusChunkBytes;
  std::vector<Hello> all(n_ranks_);
  plugin::check(host.table()->boot_exchange(host.call(), boot_, &mine, sizeof(mine), all.data()),
                "boot_exchange");
  shares_.assign(1, 0);
  all_zero_copy_ = true;
  for (uint32_t r = 0; r < n_ranks_; ++r) {
    if (all[r].layout != kLayout || all[r].n_ranks != n_ranks_) {
      throw Failure(NETCL_E_STATE, "host transport: rank " + std::to_string(r) +
                                       " runs another version of the transport");
    }
    chunk_bytes_ = std::max(chunk_bytes_, all[r].chunk_bytes);
    chunk_given_ |= all[r].chunk_given != 0;
    shares_.push_back(shares_.back() + all[r].threads);
    any_zero_copy_ |= all[r].zero_copy != 0;
    all_zero_copy_ &= all[r].zero_copy != 0;
  }
  // Whole cache lines, also of 8-byte elements.
  chunk_bytes_ = (chunk_bytes_ + 63) / 64 * 64;
  reduction_ = choose_reduction(host, options);
  host.log(NETCL_LOG_INFO, "host transport: " + choice.text + "; chunks of " +
                               std::to_string(chunk_bytes_ / 1024) + " KiB, " +
                               std::to_string(mine.threads) + " thread(s) reduce" +
                               (reduction_.empty() ? "" : "; " + reduction_));
}

void HostGroup::open_queues(const Host& host, const netcl_group_spec& spec) {
  void *platform = nullptr, *device = nullptr, *context = nullptr;
  plugin::check(host.table()->device_cl(host.call(), spec.device, &platform, &device, &context),
                "device_cl");
  cl_.device = static_cast<cl_device_id>(device);
  cl_.context = static_cast<cl_context>(context);
  cl_int code = CL_SUCCESS;
  cl_.queue = clCreateCommandQueue(cl_.context, cl_.device, 0, &code);
  check_cl(code, "clCreateCommandQueue");
  cl_.out = clCreateCommandQueue(cl_.context, cl_.device, 0, &code);
  if (code != CL_SUCCESS) clReleaseCommandQueue(cl_.queue);
  check_cl(code, "clCreateCommandQueue");
}

void HostGroup::release_queues() noexcept {
  clReleaseCommandQueue(cl_.queue);
  clReleaseCommandQueue(cl_.out);
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
  for (const Collective& c : posted_) {
    if (c.ready != nullptr) clReleaseEvent(c.ready);
  }
  clFinish(cl_.queue);  // after an error copies may still run into the slots
  clFinish(cl_.out);
  device_reducer_.reset();
  buckets_.clear();
  small_.reset();
  release_queues();
}

void HostGroup::bucket_new(const Host& host, uint64_t bytes, netcl_bucket* out) {
  void* memory = nullptr;
  if (const uint64_t shared = Bucket::shared_bytes(bytes, n_ranks_); shared > 0) {
    plugin::check(host.table()->boot_shared(host.call(), boot_, shared, &memory), "boot_shared");
  }
  auto bucket =
      std::make_unique<Bucket>(cl_, bytes, rank_, n_ranks_, way_, device_redops_ != 0, memory);
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
  clFinish(cl_.out);
  buckets_.erase(it);
  bucket->handle = bucket->send = bucket->recv = nullptr;
}

uint64_t HostGroup::post(const Host& host, const netcl_coll& c) {
  Collective collective(c, n_ranks_);
  plugin::check(host.table()->boot_status(host.call(), boot_), "boot_status");
  const std::lock_guard<std::mutex> lock(mutex_);
  if (problem_) throw Failure(problem_->code, problem_->text);
  if (collective.ready != nullptr) {
    check_cl(clRetainEvent(collective.ready), "clRetainEvent of `ready`");
  }
  collective.sequence = next_sequence_++;
  posted_.push_back(std::move(collective));
  posted_changed_.notify_one();
  return next_sequence_ - 1;
}

bool HostGroup::can_run_here() const {
  if (running_ || posted_.empty()) return false;
  // While the device is busy the host's word must be heard, so that wait is for the other thread.
  cl_event ready = posted_.front().ready;
  cl_int status = CL_COMPLETE;
  if (ready != nullptr) {
    clGetEventInfo(ready, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr);
  }
  return status <= CL_COMPLETE;
}

void HostGroup::ask_host(const Host& host) {
  const netcl_rc rc = host.table()->boot_status(host.call(), boot_);
  if (rc == NETCL_OK) return;
  // The peers hear of it from their own hosts, with the reason.
  give_up({rc, "the group was stopped by its host"}, false);
  throw plugin::Reported(rc, "boot_status");
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
    ask_host(host);  // first of all, because it knows the cause where a peer sees a consequence
    lock.lock();
    if (completed_ >= ticket) continue;
    if (problem_) throw Failure(problem_->code, problem_->text);
    if (can_run_here()) {
      run_oldest(lock, &host);
    } else {
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

void HostGroup::run_oldest(std::unique_lock<std::mutex>& lock, const Host* host) {
  const Collective collective = std::move(posted_.front());
  posted_.pop_front();
  running_ = true;
  lock.unlock();
  std::optional<Problem> failure;
  std::exception_ptr stopped;
  try {
    Run run(*this, collective, host);
    run();
    chunks_done_ += run.chunks();
  } catch (const plugin::Reported&) {
    stopped = std::current_exception();
  } catch (const Failure& e) {
    failure = Problem{e.code(), e.what()};
  } catch (const std::exception& e) {
    failure = Problem{NETCL_E_BUG, std::string("host transport: ") + e.what()};
  }
  if (failure) give_up(*failure);
  lock.lock();
  running_ = false;
  if (!failure && !stopped) completed_ = collective.sequence;
  completed_changed_.notify_all();
  if (!posted_.empty() || problem_) posted_changed_.notify_all();
  if (stopped) std::rethrow_exception(stopped);
}

void HostGroup::progress_loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    posted_changed_.wait(lock,
                         [&] { return closing_ || problem_ || (!posted_.empty() && !running_); });
    if (closing_ || problem_) return;
    run_oldest(lock, nullptr);
  }
}

}  // namespace netcl::host_transport
