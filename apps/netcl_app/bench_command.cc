// netcl-app bench: medians of repeated runs, with the check that the results are right.
#include <iomanip>
#include <iostream>

#include "apps/netcl_app/bench_async.h"
#include "apps/netcl_app/bench_commands.h"
#include "apps/netcl_app/commands.h"
#include "apps/netcl_app/options.h"
#include "core/distributed/selectors.h"

namespace netcl::app {

namespace {

struct AsyncOptions {
  CommonOptions common;
  AsyncBenchOptions bench;
  std::string device = "cpu:0";
};

// The whole device that everything but two_devices runs on, and the two for that: two different
// ones, or the parts of a device shared as "cpu:0/2" or "cpu:0/4+12" (a CPU named alone is halved,
// too).
struct Places {
  FoundDevice whole;
  std::vector<FoundDevice> pair;
};

Places find_places(const std::string& selectors) {
  const std::vector<FoundDevice> found = enumerate_devices();
  std::vector<DeviceInfo> infos;
  for (const FoundDevice& f : found) infos.push_back(f.info);
  const std::vector<WorkerPlace> places = resolve_selectors(selectors, infos);
  const auto device_of = [&](const WorkerPlace& place) {
    for (const FoundDevice& f : found) {
      if (f.info.platform_selector() == place.device.platform_selector()) return f;
    }
    fail(ErrorCode::kInternal, "device ", place.label(), " was resolved but not found");
  };
  NETCL_CHECK(places.size() <= 2, ErrorCode::kUsage, "--device ", selectors, ": names ",
              places.size(),
              " devices or shares; expected one or two, such as cpu:0/2 or gpu:0,cpu:0");
  Places out{device_of(places[0]), {}};
  const DeviceInfo& first = places[0].device;
  if (places.size() == 2 && places[0].shares.count == 1) {
    out.pair = {out.whole, device_of(places[1])};
  } else if (places.size() == 2) {
    out.pair = divide_device(out.whole, places[0].shares);
  } else if (first.type == "cpu" && first.compute_units > 1 && first.compute_units % 2 == 0) {
    out.pair = divide_device(out.whole, 2);
  }
  return out;
}

Json measure(const AsyncOptions& options) {
  const Places places = find_places(options.device);
  const Logger log = stderr_logger(options.common.quiet);
  std::vector<DeviceInfo> infos = {places.whole.info};
  for (const FoundDevice& f : places.pair) infos.push_back(f.info);
  PluginHost plugins(options.common.plugin_options(), infos, log);
  KernelChoice kernels(plugins, options.common.pins());
  Json out;
  {
    BenchDevice device(places.whole, kernels, log);
    out["device"] = device.selector();
    out["increments"] = bench_increments(device, options.bench);
    out["bounded"] = bench_bounded(device, options.bench);
    out["matmul"] = bench_matmul(device, options.bench);
    out["read"] = bench_read(device, options.bench);
  }
  out["two_devices"] = nullptr;
  if (!places.pair.empty()) {
    BenchDevice first(places.pair[0], kernels, log), second(places.pair[1], kernels, log);
    out["two_devices"] = bench_two_devices(first, second, options.bench);
  }
  return out;
}

// "name  key value  key value", one line a measurement.
void print(const Json& result) {
  for (const auto& [name, values] : result.items()) {
    std::cout << std::left << std::setw(12) << name;
    if (values.is_object()) {
      for (const auto& [key, value] : values.items())
        std::cout << "  " << key << " " << value.dump();
    } else {
      std::cout << "  " << (values.is_null() ? "one device only" : values.get<std::string>());
    }
    std::cout << "\n";
  }
}

void check_results(const Json& result) {
  for (const auto& [name, values] : result.items()) {
    NETCL_CHECK(!values.is_object() || values.value("correct", true), ErrorCode::kDevice,
                "bench async: ", name, " gave a wrong result: ", values.dump());
  }
  const Json& matmul = result["matmul"];
  const double allowed = 1e-7 * matmul["size"].get<double>();
  NETCL_CHECK(matmul["max_rel_err"].get<double>() <= allowed, ErrorCode::kDevice,
              "bench async: the product is wrong by ", matmul["max_rel_err"].dump(),
              " of its largest element; allowed is ", allowed);
}

int run_async(const AsyncOptions& options) {
  const Json result = measure(options);
  check_results(result);
  if (options.common.json) {
    std::cout << result.dump(2) << "\n";
  } else {
    print(result);
  }
  return 0;
}

}  // namespace

void add_bench_command(CLI::App& app, Run& run) {
  CLI::App* bench = app.add_subcommand("bench", "Measure devices; every result is checked");
  bench->require_subcommand(1);
  add_bench_allreduce(*bench, run);
  add_bench_step(*bench, run);
  add_bench_op(*bench, run);
  auto options = std::make_shared<AsyncOptions>();
  CLI::App* command = bench->add_subcommand("async",
                                            "Increments with and without waits, a product, a read "
                                            "ahead of later work, a million ops, two devices");
  command->footer("Example: netcl-app bench async --device cpu:0/2 --json");
  add_common(*command, options->common);
  add_kernels(*command, options->common);
  command->add_option("--device", options->device, "One device, one shared as cpu:0/2, or two")
      ->capture_default_str();
  command->add_option("--repeats", options->bench.repeats, "Runs of which the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--increments", options->bench.increments, "Length of the chain")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  command->add_option("--size", options->bench.matrix_size, "Rows and columns of the product")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command
      ->add_option("--ops", options->bench.bounded_ops,
                   "Ops enqueued without a wait (counted exactly up to 2^24)")
      ->check(CLI::Range(10, 1 << 24))
      ->capture_default_str();
  command->callback([options, &run] { run = [options] { return run_async(*options); }; });
}

}  // namespace netcl::app
