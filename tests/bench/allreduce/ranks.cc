// Times a transport's all_reduce of f32 sums over real processes, one a device, through the plugin
// host and the communicator, as training does.
//
//   ranks --plugins DIR --devices LIST [--transport ID] [--rounds N] [--warm-up N] [--log]
//         BYTES...
//
// A round's time runs from the moment at which the last rank has its gradients on its device until
// the last rank may use the result; the rounds before the timed ones are not shown, and the first
// is checked element by element. Output: a line "BYTES SECONDS" for each timed round, sizes one
// after the other; with --log the transport's own lines on stderr.
//
// Worker processes are this program again. The reusable part is RankBench.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/environment.h"
#include "core/cl/device.h"
#include "core/collective/bootstrap.h"
#include "core/collective/communicator.h"
#include "core/collective/futex.h"
#include "core/distributed/process.h"
#include "core/distributed/selectors.h"
#include "core/runtime/plugin_host.h"

namespace netcl::bench {
namespace {

constexpr int kSegmentFd = 5, kStatusFd = 6;
constexpr uint64_t kTimeoutMs = 120'000;
constexpr const char* kRankVariable = "NETCL_BENCH_RANK";

struct Arguments {
  std::string plugins, devices = "cpu:0/2", transport = "host";
  int rounds = 9, warm_up = 3;
  bool log = false;
  std::vector<uint64_t> sizes;
};

Arguments parse(const std::vector<std::string>& words) {
  Arguments a;
  for (size_t i = 0; i < words.size(); ++i) {
    const auto value = [&] {
      NETCL_CHECK(i + 1 < words.size(), ErrorCode::kUsage, words[i], " needs a value");
      return words[++i];
    };
    if (words[i] == "--plugins") {
      a.plugins = value();
    } else if (words[i] == "--devices") {
      a.devices = value();
    } else if (words[i] == "--transport") {
      a.transport = value();
    } else if (words[i] == "--rounds") {
      a.rounds = std::stoi(value());
    } else if (words[i] == "--warm-up") {
      a.warm_up = std::max(std::stoi(value()), 1);
    } else if (words[i] == "--log") {
      a.log = true;
    } else {
      a.sizes.push_back(std::stoull(words[i]) / 4 * 4);
    }
  }
  NETCL_CHECK(!a.plugins.empty() && !a.sizes.empty(), ErrorCode::kUsage,
              "ranks --plugins DIR --devices LIST BYTES...");
  return a;
}

std::vector<WorkerPlace> places_of(const std::string& devices) {
  std::vector<DeviceInfo> infos;
  for (const FoundDevice& d : enumerate_devices()) infos.push_back(d.info);
  return resolve_selectors(devices, infos);
}

// As netcl-app does: workers that share a processor each keep to their part of its cores.
void keep_to_own_cores(const WorkerPlace& place) {
  cpu_set_t all, mine;
  CPU_ZERO(&mine);
  if (place.shares.count < 2 || sched_getaffinity(0, sizeof(all), &all) != 0) return;
  std::vector<int> cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &all)) cores.push_back(i);
  }
  const auto available = static_cast<int64_t>(cores.size());
  const DeviceShares::Range range = place.shares.range(place.share_index, available);
  for (int64_t i = range.first; i < range.first + range.count; ++i) {
    CPU_SET(cores[static_cast<size_t>(i % available)], &mine);
  }
  sched_setaffinity(0, sizeof(mine), &mine);
}

struct Moment {
  uint64_t ready_ns, usable_ns;  // of the clock that all processes share
};

// One rank: its device, group and one bucket.
class RankBench {
 public:
  RankBench(const Arguments& arguments, FoundDevice device, std::shared_ptr<Segment> segment,
            uint32_t rank)
      : log_([on = arguments.log, rank](LogLevel, const std::string& text) {
          if (on) std::fprintf(stderr, "rank %u: %s\n", rank, text.c_str());
        }),
        device_(std::move(device), environment::cache_dir(), log_),
        queue_(device_.make_queue()),
        plugins_({{arguments.plugins}, {}, {arguments.transport}}, {device_.info()}, log_),
        bootstrap_(segment, rank, kTimeoutMs * 1'000'000) {
    for (uint32_t r = 0; r < segment->n_ranks(); ++r) members_.push_back({r, 0, r, r});
    boot_.bootstrap = &bootstrap_;
    handle_ = {&device_.info(), &device_};
    netcl_group_spec spec{};
    spec.size = sizeof(spec);
    spec.rank = rank;
    spec.n_ranks = segment->n_ranks();
    spec.members = members_.data();
    spec.device = &handle_;
    spec.boot = &boot_;
    spec.timeout_ns = kTimeoutMs * 1'000'000;
    LoadedPlugin& plugin = plugins_.load(arguments.transport);
    TransportAccess access;
    access.api = &plugin.table<netcl_transport_api>(NETCL_TRANSPORT_INTERFACE);
    access.self = plugin.self();
    access.name = plugin.id();
    access.call = [&plugin](const std::function<netcl_rc(netcl_call*)>& body) {
      CallResult result;
      result.rc = plugin.raw_call(body, &result.text);
      return result;
    };
    communicator_ = std::make_unique<Communicator>(access, spec);
  }

  void set_size(uint64_t bytes) { bucket_ = &communicator_->new_bucket(bytes); }

  // A sum whose every element is known: of rank + 1 + i % 1000.
  void check() {
    const uint64_t count = bucket_->bytes / 4, n = communicator_->n_ranks();
    std::vector<float> data(count);
    for (uint64_t i = 0; i < count; ++i) {
      data[i] = static_cast<float>(communicator_->rank() + 1 + i % 1000);
    }
    queue_.enqueueWriteBuffer(send(), CL_TRUE, 0, count * 4, data.data());
    reduce();
    queue_.enqueueReadBuffer(recv(), CL_TRUE, 0, count * 4, data.data());
    for (uint64_t i = 0; i < count; ++i) {
      const auto want = static_cast<float>(n * (i % 1000) + n * (n + 1) / 2);
      NETCL_CHECK(data[i] == want, ErrorCode::kInternal, "element ", i, " is ", data[i], ", not ",
                  want);
    }
  }

  Moment timed() {
    queue_.enqueueFillBuffer(send(), 1.0f, 0, bucket_->bytes);  // as a kernel would write gradients
    queue_.finish();
    communicator_->barrier("ready");
    Moment m{};
    m.ready_ns = monotonic_ns();
    reduce();
    m.usable_ns = monotonic_ns();
    return m;
  }

 private:
  cl::Buffer send() const { return cl::Buffer(static_cast<cl_mem>(bucket_->send), true); }
  cl::Buffer recv() const { return cl::Buffer(static_cast<cl_mem>(bucket_->recv), true); }
  void reduce() {
    communicator_->wait(communicator_->all_reduce(
        {*bucket_, 0, bucket_->bytes / 4, DType::kF32, nullptr, "bench"}, ReduceOp::kSum));
  }

  Logger log_;
  Device device_;
  cl::CommandQueue queue_;
  PluginHost plugins_;
  Bootstrap bootstrap_;
  netcl_boot boot_{};
  netcl_device handle_{};
  std::vector<netcl_member> members_;
  std::unique_ptr<Communicator> communicator_;
  const netcl_bucket* bucket_ = nullptr;
};

int run_worker(const Arguments& arguments, uint32_t rank) {
  try {
    const auto segment = Segment::attach(UniqueFd(kSegmentFd));
    const WorkerPlace place = places_of(arguments.devices).at(rank);
    keep_to_own_cores(place);
    std::unique_ptr<RankBench> bench;
    for (FoundDevice& d : enumerate_devices()) {
      if (d.info.selector == place.device.selector) {
        bench = std::make_unique<RankBench>(arguments, d, segment, rank);
      }
    }
    NETCL_CHECK(bench != nullptr, ErrorCode::kDevice, place.device.selector, " is gone");
    for (const uint64_t bytes : arguments.sizes) {
      bench->set_size(bytes);
      bench->check();
      for (int i = 1; i < arguments.warm_up; ++i) bench->timed();
      for (int i = 0; i < arguments.rounds; ++i) {
        const Moment m = bench->timed();
        write_line(kStatusFd, str_cat(bytes, " ", i, " ", m.ready_ns, " ", m.usable_ns));
      }
    }
    bench.reset();
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "rank " << rank << ": " << e.what() << "\n";
    return 1;
  }
}

int run_parent(const std::vector<std::string>& words) {
  const Arguments arguments = parse(words);
  const auto n = static_cast<uint32_t>(places_of(arguments.devices).size());
  const auto segment = Segment::create(n);
  std::vector<ChildProcess> children;
  for (uint32_t r = 0; r < n; ++r) {
    SpawnOptions o;
    o.argv = {"/proc/self/exe"};
    o.argv.insert(o.argv.end(), words.begin(), words.end());
    o.environment = environment::with_changes({str_cat(kRankVariable, "=", r)});
    o.descriptors = {{segment->fd(), kSegmentFd}};
    o.status_fd = kStatusFd;
    children.emplace_back(o);
  }
  std::map<std::pair<size_t, int>, Moment> latest;  // by place of the size in the list, and round
  int failed = 0;
  for (ChildProcess& child : children) {
    LineReader reader(child.status_fd());
    while (!reader.at_end()) {
      wait_any({}, {child.status_fd()}, -1);
      for (const std::string& line : reader.read_lines()) {
        std::istringstream in(line);
        uint64_t bytes = 0, ready = 0, usable = 0;
        int round = 0;
        in >> bytes >> round >> ready >> usable;
        const auto at = std::find(arguments.sizes.begin(), arguments.sizes.end(), bytes);
        Moment& m = latest[{static_cast<size_t>(at - arguments.sizes.begin()), round}];
        m.ready_ns = std::max(m.ready_ns, ready);
        m.usable_ns = std::max(m.usable_ns, usable);
      }
    }
    if (!child.wait(-1)->success()) {
      ++failed;
      segment->abort("a rank of the measurement failed");
    }
  }
  if (failed > 0) return 1;
  for (const auto& [key, m] : latest) {
    std::printf("%llu %.9f\n", static_cast<unsigned long long>(arguments.sizes[key.first]),
                static_cast<double>(m.usable_ns - m.ready_ns) * 1e-9);
  }
  return 0;
}

}  // namespace
}  // namespace netcl::bench

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    const char* rank = std::getenv(netcl::bench::kRankVariable);
    if (rank == nullptr) return netcl::bench::run_parent(words);
    return netcl::bench::run_worker(netcl::bench::parse(words),
                                    static_cast<uint32_t>(std::stoul(rank)));
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
    return 2;
  }
}
