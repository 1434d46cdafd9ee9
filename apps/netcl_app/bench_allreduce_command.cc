// netcl-app bench allreduce: the transports' all_reduce beside plain copies of the same size.
#include <algorithm>
#include <iomanip>
#include <iostream>

#include "apps/netcl_app/bench_commands.h"
#include "apps/netcl_app/options.h"
#include "apps/netcl_app/probe.h"
#include "apps/netcl_app/supervisor.h"
#include "core/distributed/selectors.h"
#include "core/runtime/transport.h"

namespace netcl::app {

namespace {

struct AllReduceOptions : CommonOptions {
  std::string devices = "all";
  std::vector<std::string> transports = {"auto"}, dtypes = {"f32"};
  std::vector<uint64_t> bytes = {4 << 10, 64 << 10, 1 << 20, 25 << 20, 64 << 20};
  int repeats = 9;
};

// Every worker is given a data set; this job reads none.
Dataset no_data() {
  const float x = 0;
  const int32_t label = 0;
  DatasetSpec spec;
  spec.sample_shape = Shape{1};
  spec.num_samples = 1;
  spec.features = &x;
  spec.labels = &label;
  return Dataset::create(spec);
}

void check_sizes(const AllReduceOptions& options) {
  for (const std::string& name : options.dtypes) {
    const DType dtype = dtype_named(name);
    NETCL_CHECK(dtype != DType::kBool, ErrorCode::kUsage,
                "--dtype bool: it cannot be added up; expected f32, f16, bf16, i32, i64 or u8");
    for (const uint64_t bytes : options.bytes) {
      NETCL_CHECK(bytes >= size_of(dtype), ErrorCode::kUsage, "--bytes ", bytes,
                  ": expected at least one ", name, ", ", size_of(dtype), " bytes");
    }
  }
}

// The rows of one transport, each with its name.
Json measure(const std::vector<WorkerPlace>& places, const AllReduceOptions& options,
             const std::string& transport) {
  Job job;
  job.mode = "bench_allreduce";
  job.plugins = options.plugin_options();
  job.transport = transport;
  job.bench = {{"bytes", options.bytes}, {"dtypes", options.dtypes}, {"repeats", options.repeats}};
  const Dataset data = no_data();
  Json rows = Json::array();
  Supervisor supervisor(places, job, data, nullptr, [&](uint32_t, const Json& message) {
    if (message.at("type") == "note")
      stderr_logger(options.quiet).warning(message.at("text").get<std::string>());
    if (message.at("type") != "row") return;
    Json row = {{"transport", transport}};
    for (const auto& [key, value] : message.items()) {
      if (key != "type") row[key] = value;
    }
    rows.push_back(std::move(row));
  });
  const RunOutcome outcome = supervisor.run();
  if (outcome.error) throw *outcome.error;
  return rows;
}

void print(const Json& rows) {
  const std::pair<const char*, int> columns[] = {{"transport", 10},    {"ranks", 6},
                                                 {"bytes", 10},        {"dtype", 6},
                                                 {"time_us", 11},      {"busbw_gbs", 10},
                                                 {"memcpy_ratio", 13}, {"bound_us", 11},
                                                 {"bound_by", 9},      {"percent_of_bound", 17},
                                                 {"correct", 8}};
  std::cout << std::fixed << std::setprecision(2);
  for (const auto& [name, width] : columns) std::cout << std::setw(width) << name;
  std::cout << "\n";
  for (const Json& row : rows) {
    for (const auto& [name, width] : columns) {
      std::cout << std::setw(width);
      const Json& value = row.at(name);
      if (value.is_string()) {
        std::cout << value.get<std::string>();
      } else if (value.is_number_float()) {
        std::cout << value.get<double>();
      } else {
        std::cout << value.dump();
      }
    }
    std::cout << "\n";
  }
}

int run_allreduce(const AllReduceOptions& options) {
  check_sizes(options);
  const std::vector<DeviceInfo> devices = probe_devices().require_devices();
  const std::vector<WorkerPlace> places = resolve_selectors(options.devices, devices);
  NETCL_CHECK(places.size() > 1, ErrorCode::kUsage, "--devices ", options.devices,
              ": names one device; a group has two or more, such as cpu:0/2 or gpu:0,gpu:1");
  const PluginHost plugins(options.plugin_options(), devices, stderr_logger(options.quiet));
  Json rows = Json::array();
  for (const std::string& name : options.transports) {
    for (Json& row : measure(places, options, choose_transport(name, plugins)))
      rows.push_back(std::move(row));
  }
  if (options.json) {
    std::cout << Json({{"results", rows}}).dump(2) << "\n";
  } else {
    print(rows);
  }
  const auto wrong =
      std::find_if(rows.begin(), rows.end(), [](const Json& r) { return r.at("correct") != true; });
  if (wrong == rows.end()) return 0;
  std::cerr << "error: transport " << wrong->at("transport").get<std::string>() << ": the sum of "
            << wrong->at("bytes") << " bytes of " << wrong->at("dtype").get<std::string>()
            << " over the ranks differs from the sum in rank order\n";
  return exit_code(ErrorCode::kPlugin);
}

}  // namespace

void add_bench_allreduce(CLI::App& bench, Run& run) {
  auto options = std::make_shared<AllReduceOptions>();
  CLI::App* command = bench.add_subcommand(
      "allreduce", "Sums over the workers beside plain copies and the bound of the links");
  command->footer("Example: netcl-app bench allreduce --devices cpu:0/2 --bytes 4096,67108864");
  add_common(*command, *options);
  command->add_option("--devices", options->devices, "Devices, a worker each, as for train")
      ->capture_default_str();
  command->add_option("--transport", options->transports, "Transport plugins, or auto")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--bytes", options->bytes, "Sizes")
      ->delimiter(',')
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40))
      ->capture_default_str();
  command->add_option("--dtype", options->dtypes, "Types: f32, f16, bf16, i32, i64, u8")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--repeats", options->repeats, "Runs of which the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->callback([options, &run] { run = [options] { return run_allreduce(*options); }; });
}

}  // namespace netcl::app
