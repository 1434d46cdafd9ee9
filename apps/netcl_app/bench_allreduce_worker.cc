#include "apps/netcl_app/bench_allreduce_worker.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <new>
#include <thread>

#include "apps/netcl_app/bench_values.h"
#include "apps/netcl_app/open_device.h"
#include "apps/netcl_app/rank_group.h"
#include "core/base/environment.h"
#include "core/base/statistics.h"
#include "core/cl/pinned.h"
#include "core/collective/futex.h"
#include "core/distributed/process.h"

namespace netcl::app {

namespace {

constexpr int kWarmUps = 2;
constexpr int kLinkRepeats = 4;  // the fastest counts: a bound knows no disturbance
constexpr uint32_t kSpins = 1024;

// Brings the ranks to one moment, and makes one time of what each measured. Apart from transports.
class StartLine {
 public:
  explicit StartLine(Bootstrap& bootstrap)
      : bootstrap_(bootstrap),
        arrived_(*static_cast<std::atomic<uint64_t>*>(
            bootstrap.shared_memory(sizeof(std::atomic<uint64_t>)))) {}

  // Returns when every rank has called it, within about a microsecond on all.
  void meet() {
    const uint64_t target = ++rounds_ * bootstrap_.n_ranks();
    arrived_.fetch_add(1, std::memory_order_acq_rel);
    for (uint32_t spins = 1; arrived_.load(std::memory_order_acquire) < target; ++spins) {
      if (spins % kSpins != 0) {
        if (spins % 16 == 0) ::sched_yield();
        continue;
      }
      if (const auto reason = bootstrap_.status()) fail(ErrorCode::kTraining, *reason);
    }
  }

  // Runs `body` on all ranks at once. Returns microseconds from the last begin to the last end.
  double together(const std::function<void()>& body) {
    meet();
    Times mine{monotonic_ns(), 0};
    body();
    mine.end = monotonic_ns();
    std::vector<Times> all(bootstrap_.n_ranks());
    bootstrap_.exchange(&mine, sizeof(mine), all.data());
    uint64_t begin = 0, end = 0;
    for (const Times& t : all) {
      begin = std::max(begin, t.begin);
      end = std::max(end, t.end);
    }
    return static_cast<double>(end - begin) * 1e-3;
  }

  // Runs `body` on one rank after the other. Returns the slowest one's microseconds.
  double in_turn(const std::function<void()>& body) {
    double mine = 0;
    for (uint32_t r = 0; r < bootstrap_.n_ranks(); ++r) {
      meet();
      if (r != bootstrap_.rank()) continue;
      const uint64_t begin = monotonic_ns();
      body();
      mine = static_cast<double>(monotonic_ns() - begin) * 1e-3;
    }
    meet();
    std::vector<double> all(bootstrap_.n_ranks());
    bootstrap_.exchange(&mine, sizeof(mine), all.data());
    return *std::max_element(all.begin(), all.end());
  }

  bool on_all(bool mine) {
    const auto value = static_cast<uint8_t>(mine);
    std::vector<uint8_t> all(bootstrap_.n_ranks());
    bootstrap_.exchange(&value, 1, all.data());
    return std::all_of(all.begin(), all.end(), [](uint8_t v) { return v != 0; });
  }

 private:
  struct Times {
    uint64_t begin, end;
  };
  Bootstrap& bootstrap_;
  std::atomic<uint64_t>& arrived_;
  uint64_t rounds_ = 0;
};

// Copies with several threads of this process, which exist before a clock starts.
class CopyTeam {
 public:
  explicit CopyTeam(unsigned n_threads) : n_threads_(n_threads) {
    for (unsigned i = 1; i < n_threads; ++i) threads_.emplace_back([this, i] { follow(i); });
  }
  CopyTeam(const CopyTeam&) = delete;
  CopyTeam& operator=(const CopyTeam&) = delete;
  ~CopyTeam() {
    bytes_ = 0;
    round_.fetch_add(1);
    for (std::thread& t : threads_) t.join();
  }
  void copy(uint8_t* to, const uint8_t* from, size_t bytes) {
    to_ = to;
    from_ = from;
    bytes_ = bytes;
    left_.store(n_threads_ - 1);
    round_.fetch_add(1);
    copy_part(0);
    while (left_.load() != 0) ::sched_yield();
  }

 private:
  void copy_part(unsigned i) const {
    const size_t begin = bytes_ / n_threads_ * i;
    const size_t end = i + 1 == n_threads_ ? bytes_ : bytes_ / n_threads_ * (i + 1);
    std::memcpy(to_ + begin, from_ + begin, end - begin);
  }
  void follow(unsigned i) {
    for (uint64_t seen = 0;;) {
      while (round_.load() == seen) ::sched_yield();
      ++seen;
      if (bytes_ == 0) return;
      copy_part(i);
      left_.fetch_sub(1);
    }
  }

  const unsigned n_threads_;
  uint8_t* to_ = nullptr;
  const uint8_t* from_ = nullptr;
  size_t bytes_ = 0;  // with the pointers published by round_; 0: the end
  std::atomic<uint64_t> round_{0};
  std::atomic<unsigned> left_{0};
  std::vector<std::thread> threads_;
};

// Processors for each rank, of those that any rank may use.
unsigned processors_each(Bootstrap& bootstrap) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  ::sched_getaffinity(0, sizeof(mine), &mine);
  std::vector<cpu_set_t> all(bootstrap.n_ranks());
  bootstrap.exchange(&mine, sizeof(mine), all.data());
  for (const cpu_set_t& set : all) CPU_OR(&mine, &mine, &set);
  return std::max(static_cast<unsigned>(CPU_COUNT(&mine)) / bootstrap.n_ranks(), 1u);
}

// One size and type.
class AllReduceBench {
 public:
  AllReduceBench(const Job& job, const std::shared_ptr<Segment>& segment, LoadedPlugin& plugin,
                 const std::shared_ptr<Queue>& queue, uint64_t bytes, DType dtype)
      : job_(job),
        queue_(*queue),
        dtype_(dtype),
        count_(bytes / size_of(dtype)),
        bytes_(count_ * size_of(dtype)),
        group_(segment, plugin, queue, spec(job)),
        bucket_(group_.new_bucket(bytes_)),
        links_(group_.links()),
        line_(*links_.bootstrap),
        source_(queue->device().make_buffer(bytes_, "the data to add up")),
        send_(static_cast<cl_mem>(bucket_.send), true),
        recv_(static_cast<cl_mem>(bucket_.recv), true),
        pinned_(queue->device(), queue->cl(), bytes_, "copies"),
        from_(bytes_),
        shared_(static_cast<uint8_t*>(links_.bootstrap->shared_memory(stride() * links_.n_ranks))) {
    std::memset(shared_ + links_.rank * stride(), 1, bytes_);  // no page is new when it is timed
  }

  Json run(int repeats) {
    for (int i = 0; i < kWarmUps + repeats; ++i) {
      const bool copy_first = i % 2 == 1;  // neither finds the caches as the other left them
      if (copy_first) time_copy(i);
      time_all_reduce(i);
      if (!copy_first) time_copy(i);
      links_.bootstrap->segment().tick(links_.rank);
    }
    Json out = {{"ranks", links_.n_ranks}, {"bytes", bytes_}, {"dtype", dtype_name(dtype_)}};
    add_times(out);
    add_bound(out);
    out["correct"] = line_.on_all(correct_);
    out["repeats"] = repeats;
    return out;
  }

 private:
  static RankGroupSpec spec(const Job& job) {
    RankGroupSpec out;
    out.rank = job.rank;
    out.n_ranks = job.n_ranks;
    out.timeout_ns = job.timeout_ms * 1'000'000;
    return out;
  }
  size_t stride() const { return (bytes_ + 4095) / 4096 * 4096; }

  void time_all_reduce(int repeat) {
    const auto seed_of = [&](uint32_t rank) {
      return hash_seed(static_cast<uint64_t>(repeat), rank);
    };
    const Bytes mine = random_values(dtype_, count_, seed_of(links_.rank));
    cl::Event ready;
    with_cl_errors("preparing the data to add up", [&] {
      const cl::CommandQueue& cl = queue_.cl();
      cl.enqueueWriteBuffer(source_, CL_TRUE, 0, bytes_, mine.data());
      cl.enqueueCopyBuffer(source_, send_, 0, 0, bytes_);
      cl.enqueueMarkerWithWaitList(nullptr, &ready);
      ready.wait();
    });
    const double us = line_.together([&] {
      links_.communicator->wait(links_.communicator->all_reduce(
          {bucket_, 0, count_, dtype_, ready(), "bench"}, ReduceOp::kSum));
      with_cl_errors("waiting for a result", [&] {
        cl::Event usable;
        queue_.cl().enqueueMarkerWithWaitList(nullptr, &usable);
        usable.wait();
      });
    });
    if (repeat >= kWarmUps) all_reduce_us_.push_back(us);
    Bytes got(bytes_);
    with_cl_errors("reading a result",
                   [&] { queue_.cl().enqueueReadBuffer(recv_, CL_TRUE, 0, bytes_, got.data()); });
    RankOrderSum wanted(dtype_, count_);
    for (uint32_t r = 0; r < links_.n_ranks; ++r)
      wanted.add(r == links_.rank ? mine : random_values(dtype_, count_, seed_of(r)));
    correct_ = correct_ && got == wanted.result();
  }

  static uint64_t hash_seed(uint64_t repeat, uint64_t rank) {
    return (repeat + 1) * 0x9e3779b97f4a7c15u ^ (rank + 1) * 0xd1342543de82ef95u;
  }

  void time_copy(int repeat) {
    std::fill(from_.begin(), from_.end(), static_cast<uint8_t>(repeat));
    uint8_t* to = shared_ + links_.rank * stride();
    const double us = line_.together([&] { std::memcpy(to, from_.data(), bytes_); });
    correct_ = correct_ && std::memcmp(to, from_.data(), bytes_) == 0;
    if (repeat >= kWarmUps) copy_us_.push_back(us);
  }

  void add_times(Json& out) const {
    const double us = median(all_reduce_us_), copy = median(copy_us_);
    const double n = links_.n_ranks, size = static_cast<double>(bytes_);
    out["time_us"] = us;
    out["min_us"] = *std::min_element(all_reduce_us_.begin(), all_reduce_us_.end());
    out["max_us"] = *std::max_element(all_reduce_us_.begin(), all_reduce_us_.end());
    out["busbw_gbs"] = 2 * (n - 1) / n * size / us * 1e-3;
    out["memcpy_us"] = copy;
    out["memcpy_ratio"] = us / copy;
  }

  // max(S/D2H, S/H2D, N S/root, (3N + 1) S/memory), each from this row's own size.
  void add_bound(Json& out) {
    const cl::CommandQueue& cl = queue_.cl();
    const auto down = [&] { cl.enqueueReadBuffer(source_, CL_TRUE, 0, bytes_, pinned_.data()); };
    const auto up = [&] { cl.enqueueWriteBuffer(source_, CL_TRUE, 0, bytes_, pinned_.data()); };
    const auto best = [&](const std::function<double()>& time) {
      double us = time();
      for (int i = 1; i < kLinkRepeats; ++i) us = std::min(us, time());
      return us;
    };
    with_cl_errors("timing copies", [&] {
      const double d2h = best([&] { return line_.in_turn(down); });
      const double h2d = best([&] { return line_.in_turn(up); });
      const double root = std::min(best([&] { return line_.together(down); }),
                                   best([&] { return line_.together(up); }));
      const double n = links_.n_ranks, size = static_cast<double>(bytes_);
      const unsigned threads = processors_each(*links_.bootstrap);
      CopyTeam team(threads);
      uint8_t* const to = shared_ + links_.rank * stride();
      const double copy =
          best([&] { return line_.together([&] { team.copy(to, from_.data(), bytes_); }); });
      // N concurrent copies read and write S each; with one thread a rank, where more do not help.
      const double one_thread = *std::min_element(copy_us_.begin(), copy_us_.end());
      const double memory_gbs = 2 * n * size / std::min(copy, one_thread) * 1e-3;
      const std::pair<const char*, double> terms[] = {
          {"d2h", d2h},
          {"h2d", h2d},
          {"root", root},
          {"memory", (3 * n + 1) * size / memory_gbs * 1e-3}};
      const auto* bound = std::max_element(std::begin(terms), std::end(terms),
                                           [](auto& a, auto& b) { return a.second < b.second; });
      out["d2h_gbs"] = size / d2h * 1e-3;
      out["h2d_gbs"] = size / h2d * 1e-3;
      out["root_gbs"] = n * size / root * 1e-3;
      out["memory_gbs"] = memory_gbs;
      out["memory_threads"] = copy < one_thread ? threads : 1;
      out["bound_us"] = bound->second;
      out["bound_by"] = bound->first;
      out["percent_of_bound"] = 100 * bound->second / out["time_us"].get<double>();
    });
  }

  const Job& job_;
  Queue& queue_;
  const DType dtype_;
  const uint64_t count_, bytes_;
  RankGroup group_;
  const netcl_bucket& bucket_;
  const Group links_;
  StartLine line_;
  cl::Buffer source_, send_, recv_;
  PinnedBuffer pinned_;
  Bytes from_;
  uint8_t* shared_;
  std::vector<double> all_reduce_us_, copy_us_;
  bool correct_ = true;
};

}  // namespace

void bench_allreduce(const Job& job, const std::shared_ptr<Segment>& segment) {
  segment->set_phase(job.rank, "measuring all_reduce");
  const Logger log([](LogLevel level, const std::string& text) {
    if (level < LogLevel::kWarning) return;
    write_line(WorkerFds::kStatus, Json({{"type", "note"}, {"text", text}}).dump());
  });
  Device device(find_device(job.device), environment::cache_dir(), log);
  const std::shared_ptr<Queue> queue = Queue::create(device);
  PluginHost plugins(job.plugins, {device.info()}, log);
  LoadedPlugin& plugin = plugins.load(job.transport);
  const auto repeats = job.bench.at("repeats").get<int>();
  for (const Json& dtype : job.bench.at("dtypes")) {
    for (const Json& bytes : job.bench.at("bytes")) {
      AllReduceBench bench(job, segment, plugin, queue, bytes.get<uint64_t>(),
                           dtype_named(dtype.get<std::string>()));
      Json row = bench.run(repeats);
      if (job.rank != 0) continue;
      row["type"] = "row";
      write_line(WorkerFds::kStatus, row.dump());
    }
  }
  write_line(WorkerFds::kStatus, Json({{"type", "done"}, {"stopped", "finished"}}).dump());
}

}  // namespace netcl::app
