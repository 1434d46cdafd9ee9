// netcl-app probe-transports (hidden): times transports over devices of this process, and prints
// the numbers. `train --transport auto` runs it as a child.
#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <iostream>
#include <memory>

#include "apps/netcl_app/bench_values.h"
#include "apps/netcl_app/one_context.h"
#include "apps/netcl_app/open_device.h"
#include "apps/netcl_app/options.h"
#include "apps/netcl_app/transport_probe.h"
#include "core/autograd/eager.h"
#include "core/base/environment.h"
#include "core/base/statistics.h"
#include "core/distributed/process.h"
#include "core/distributed/queue_group.h"
#include "core/ops/op.h"
#include "core/runtime/runtime.h"
#include "core/runtime/transport.h"
namespace netcl::app {

namespace {

using Queues = std::vector<std::shared_ptr<Queue>>;
using Devices = std::vector<std::shared_ptr<Device>>;

constexpr int kWarmUps = 2;
constexpr int kKernelRepeats = 3;
constexpr int64_t kMatrix = 768;         // rows and columns of the products that are timed
constexpr double kLeastSeconds = 0.005;  // of a round of products: far more than its enqueueing
constexpr int kMostProducts = 256;

struct ProbeOptions : CommonOptions {
  std::string devices, staged, shared;
  uint64_t bytes = 16 << 20;
  int repeats = 5;
  int64_t parent = 0;
};

double seconds_of(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Queues queues_of(const Devices& devices) {
  Queues out;
  for (const auto& device : devices) out.push_back(Queue::create(*device));
  return out;
}

// What the ranks add up, and the sum in rank order.
struct Round {
  std::vector<Bytes> values;
  Bytes sum;
};
// In turn, so that no result of the round before passes for the right one.
using Rounds = std::array<Round, 2>;

Rounds make_rounds(size_t n_ranks, uint64_t bytes) {
  const uint64_t count = bytes / sizeof(float);
  Rounds out;
  uint64_t seed = 0;
  for (Round& round : out) {
    RankOrderSum sum(DType::kF32, count);
    for (size_t r = 0; r < n_ranks; ++r) {
      round.values.push_back(random_values(DType::kF32, count, ++seed));
      sum.add(round.values.back());
    }
    round.sum = sum.result();
  }
  return out;
}

// One transport over one set of queues.
class GroupTimer {
 public:
  GroupTimer(Runtime& runtime, const Queues& queues, const std::string& transport, uint64_t bytes)
      : queues_(queues),
        count_(bytes / sizeof(float)),
        group_(runtime, queues, {transport, kGroupTimeoutMs}),
        buckets_(group_.new_buckets(bytes)) {}

  TransportTime run(const Rounds& rounds, int repeats) {
    TransportTime out;
    out.correct = true;
    std::vector<double> times;
    for (int i = 0; i < kWarmUps + repeats; ++i) {
      const Round& round = rounds[static_cast<size_t>(i) % rounds.size()];
      fill(round);
      const double seconds = seconds_of([&] { all_reduce(); });
      if (i >= kWarmUps) times.push_back(seconds * 1e6);
      out.correct = out.correct && holds(round.sum);
    }
    out.us = median(times);
    return out;
  }

 private:
  static constexpr uint64_t kGroupTimeoutMs = 30000;

  cl::Buffer send(size_t r) const {
    return cl::Buffer(static_cast<cl_mem>(buckets_[r]->send), true);
  }

  void fill(const Round& round) {
    for (size_t r = 0; r < queues_.size(); ++r) {
      with_cl_errors("writing what is added up", [&] {
        queues_[r]->cl().enqueueWriteBuffer(send(r), CL_TRUE, 0, round.values[r].size(),
                                            round.values[r].data());
      });
    }
  }

  void all_reduce() {
    std::vector<Ticket> tickets;
    for (uint32_t r = 0; r < group_.size(); ++r) {
      tickets.push_back(group_.communicator(r).all_reduce(
          {*buckets_[r], 0, count_, DType::kF32, nullptr, "probe"}, ReduceOp::kSum));
    }
    for (uint32_t r = 0; r < group_.size(); ++r) group_.communicator(r).wait(tickets[r]);
  }

  bool holds(const Bytes& wanted) const {
    Bytes got(wanted.size());
    for (size_t r = 0; r < queues_.size(); ++r) {
      with_cl_errors("reading what was added up", [&] {
        queues_[r]->cl().enqueueReadBuffer(cl::Buffer(static_cast<cl_mem>(buckets_[r]->recv), true),
                                           CL_TRUE, 0, got.size(), got.data());
      });
      if (got != wanted) return false;
    }
    return true;
  }

  const Queues queues_;
  const uint64_t count_;
  QueueGroup group_;
  const Buckets buckets_;
};

TransportTime time_of(Runtime& runtime, const std::string& transport, const Rounds& rounds,
                      const ProbeOptions& options, const std::function<Devices()>& open) {
  try {
    const Devices devices = open();
    return GroupTimer(runtime, queues_of(devices), transport, options.bytes)
        .run(rounds, options.repeats);
  } catch (const Error& e) {
    TransportTime out;
    out.error = e.message();
    return out;
  }
}

// Matrix products on one queue.
class Products {
 public:
  Products(Runtime& runtime, const std::shared_ptr<Queue>& queue)
      : eager_(runtime.kernels(), queue),
        op_(find_op("matmul")),
        attrs_(complete_attrs(op_, {})),
        a_(Tensor::from_floats(queue, Shape{kMatrix, kMatrix},
                               std::vector<float>(kMatrix * kMatrix, 0.5f))) {}
  void enqueue(int count) {
    for (int i = 0; i < count; ++i) out_ = eager_.run(op_, {a_, a_}, {a_.desc()}, attrs_).front();
    with_cl_errors("timing kernels", [&] { eager_.queue()->cl().flush(); });
  }
  void finish() { eager_.queue()->finish(); }

 private:
  Eager eager_;
  const OpRow& op_;
  const Attrs attrs_;
  Tensor a_, out_;
};

// Equal kernels on all queues, by the time of the slowest alone.
double kernels_together(Runtime& runtime, const Queues& queues) {
  std::vector<std::unique_ptr<Products>> products;
  for (const auto& queue : queues) products.push_back(std::make_unique<Products>(runtime, queue));
  const auto time = [&](size_t first, size_t end, int count) {
    return seconds_of([&] {
      for (size_t r = first; r < end; ++r) products[r]->enqueue(count);
      for (size_t r = first; r < end; ++r) products[r]->finish();
    });
  };
  const size_t n = queues.size();
  time(0, n, 1);  // builds the kernels
  int count = 1;
  while (count < kMostProducts && time(0, 1, count) < kLeastSeconds) count *= 2;
  std::vector<std::vector<double>> alone(n);
  std::vector<double> together;
  for (int i = 0; i < kKernelRepeats; ++i) {
    for (size_t r = 0; r < n; ++r) alone[r].push_back(time(r, r + 1, count));
    together.push_back(time(0, n, count));
  }
  double slowest = 0;
  for (const std::vector<double>& times : alone) slowest = std::max(slowest, median(times));
  return median(together) / slowest;
}

int run_probe_transports(const ProbeOptions& options) {
  if (options.parent > 0) die_with_parent(static_cast<pid_t>(options.parent));
  RuntimeOptions runtime_options;
  runtime_options.plugins = options.plugin_options();
  runtime_options.log = stderr_logger(options.quiet);
  Runtime runtime(runtime_options);
  const std::vector<WorkerPlace> places = resolve_selectors(options.devices, runtime.devices());
  NETCL_CHECK(places.size() > 1, ErrorCode::kUsage, "--devices ", options.devices,
              ": names one device; a group has two or more");
  TransportTimes times;
  const auto name = [&](const std::string& given, bool one_context) {
    return choose_transport(given.empty() ? best_transport(one_context, runtime.plugins()) : given,
                            runtime.plugins());
  };
  times.staged_name = name(options.staged, /*one_context=*/false);
  times.shared_name = name(options.shared, /*one_context=*/true);
  times.bytes = options.bytes / sizeof(float) * sizeof(float);
  times.n_ranks = static_cast<uint32_t>(places.size());
  const Rounds rounds = make_rounds(places.size(), times.bytes);
  times.staged = time_of(runtime, times.staged_name, rounds, options, [&] {
    Devices devices;
    for (const WorkerPlace& place : places) {
      devices.push_back(std::make_shared<Device>(find_device(place.device),
                                                 environment::cache_dir(), runtime.log()));
    }
    return devices;
  });
  times.shared = time_of(runtime, times.shared_name, rounds, options, [&] {
    return open_in_one_context(places, times.shared_name, runtime.log());
  });
  if (times.shared.error.empty()) {
    const Devices devices = open_in_one_context(places, times.shared_name, runtime.log());
    times.kernels_together = kernels_together(runtime, queues_of(devices));
  }
  std::cout << to_json(times).dump(2) << "\n";
  return 0;
}

}  // namespace

void add_probe_transports_command(CLI::App& app, Run& run) {
  auto options = std::make_shared<ProbeOptions>();
  CLI::App* command =
      app.add_subcommand("probe-transports", "Time transports over devices of one process");
  command->group("");  // not in --help: `train` runs it
  add_common(*command, *options);
  command->add_option("--devices", options->devices, "Devices of one platform")->required();
  command->add_option("--staged", options->staged,
                      "Transport for a process a device (default: the best)");
  command->add_option("--shared", options->shared,
                      "Transport for devices in one context (default: the best)");
  command->add_option("--bytes", options->bytes, "Of the sum")
      ->check(CLI::Range(uint64_t{4}, uint64_t{1} << 30))
      ->capture_default_str();
  command->add_option("--repeats", options->repeats, "Runs of which the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--parent", options->parent, "Process to end with");
  command->callback(
      [options, &run] { run = [options] { return run_probe_transports(*options); }; });
}

}  // namespace netcl::app
