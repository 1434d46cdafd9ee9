// netcl-app bench step: training steps of each device alone and of all together.
//
// Every measurement is a training run of the workers that `train` starts, without evaluation and
// checkpoints. Its data is cut to whole batches; epochs of it are timed from an idle queue to an
// idle queue, after epochs of warm-up in which kernels are built and shards settle.
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <numeric>
#include <optional>

#include "apps/netcl_app/bench_commands.h"
#include "apps/netcl_app/core_choice.h"
#include "apps/netcl_app/data_checks.h"
#include "apps/netcl_app/group_plan.h"
#include "apps/netcl_app/model_setup.h"
#include "apps/netcl_app/options.h"
#include "apps/netcl_app/probe.h"
#include "apps/netcl_app/supervisor.h"
#include "apps/netcl_app/trace_file.h"
#include "apps/netcl_app/transport_probe.h"
#include "core/base/statistics.h"
#include "core/distributed/shard_plan.h"
#include "core/runtime/layer_set.h"
#include "core/runtime/own_kernels.h"
namespace netcl::app {

namespace {

constexpr int64_t kWarmUpSteps = 30;

struct StepOptions : CommonOptions {
  std::string config, devices = "all", transport = "auto", shard = "auto", cores = "auto", trace;
  std::vector<std::string> set;
  int64_t steps = 50, trace_steps = 20;
  int rounds = 3;
};

// One run of some of the devices.
struct Measured {
  double samples = 0, seconds = 0, steps = 0;
  int64_t launches = 0;

  double samples_per_second() const { return seconds > 0 ? samples / seconds : 0; }
  double step_ms() const { return steps > 0 ? seconds / steps * 1e3 : 0; }
};

// The first whole batches, so that every step of an epoch is the same work.
Dataset whole_batches(Dataset data, int64_t batch_size, int64_t most) {
  const int64_t batches = std::min(data.epoch_samples() / batch_size, most);
  if (data.is_text() || data.draws() > 0 || batches < 1) return data;
  std::vector<int64_t> indices(static_cast<size_t>(batches * batch_size));
  std::iota(indices.begin(), indices.end(), int64_t{0});
  return data.subset(indices);
}

class StepBench {
 public:
  explicit StepBench(const StepOptions& options)
      : options_(options),
        config_(load_train_config(options.config, options.set)),
        data_(load_data(config_.data)),
        devices_(probe_devices().require_devices()),
        places_(resolve_selectors(options.devices, devices_)) {
    const ShardPlan check_shard(options.shard, places_.size());
    PluginHost plugins(options.plugin_options(), devices_, stderr_logger(options.quiet));
    GroupWishes wishes;
    wishes.transport = options.transport;
    wishes.time = [&](const std::string& staged, const std::string& shared) {
      return probe_transports(places_, {staged, shared}, options.plugin_options(), plugins);
    };
    group_ = plan_group(wishes, places_, plugins);
    if (!group_.probe.is_null() && !options.quiet) std::cerr << "transport " << group_.why << "\n";
    check_pins(options.pins(), plugins);
    (void)options.without_passes();
    kept_ops_ = ops_with_own_kernels(plugins, devices_of(places_), options.pins());
    tuned_ = options.tuned_files(plugins);
    check_input(data_.train, Shape(config_.input), data_.train_source);
    LayerSet layers(plugins);
    const StepGraphs graphs = build_step_graphs(
        step_spec_of(config_, optimizer_of(config_), DataShape::of(data_.train)), layers);
    check_data(config_, data_, graphs);
    for (const size_t workers : {size_t{1}, places_.size()})
      cores_[workers] = most_cores(options.cores, work_of_step(graphs, config_, workers));
    const std::string note = core_note(places_, cores_.at(places_.size()));
    if (!note.empty() && !options.quiet) std::cerr << note << "\n";
    train_.emplace(whole_batches(std::move(data_.train), config_.batch_size, options.steps));
    per_epoch_ = (train_->epoch_samples() + config_.batch_size - 1) / config_.batch_size;
    warm_up_ = (kWarmUpSteps + per_epoch_ - 1) / per_epoch_;
    config_.epochs = warm_up_ + (options.steps + per_epoch_ - 1) / per_epoch_;
  }

  Json run() {
    std::vector<std::vector<Measured>> alone(places_.size());
    std::vector<Measured> together;
    for (int round = 0; round < options_.rounds; ++round) {
      for (size_t i = 0; i < places_.size(); ++i) alone[i].push_back(measure({places_[i]}));
      if (places_.size() > 1) together.push_back(measure(places_));
    }
    if (places_.size() == 1) together = alone[0];
    return document(alone, together);
  }

 private:
  Measured measure(const std::vector<WorkerPlace>& places, TraceFile* trace = nullptr) {
    Job job;
    job.config = config_.resolved();
    job.config_name = options_.config;
    job.plugins = options_.plugin_options();
    job.pins = options_.pins();
    job.tuned = tuned_;
    job.without_passes = options_.without_passes();
    job.kept_ops = kept_ops_;
    job.cores = cores_.at(places.size());
    const GroupPlan group = places.size() > 1 ? group_ : GroupPlan();
    job.transport = group.transport;
    job.shard = places.size() > 1 ? options_.shard : "auto";
    if (trace != nullptr) {
      job.trace_after = warm_up_ * per_epoch_;
      job.trace_steps = options_.trace_steps;
    }
    Measured out;
    const std::vector<WorkerPlace> workers = worker_places(group, places, job);
    Supervisor supervisor(workers, job, *train_, nullptr, [&](uint32_t rank, const Json& message) {
      const std::string type = message.at("type").get<std::string>();
      if (type == "note" && !options_.quiet)
        std::cerr << message.at("text").get<std::string>() << "\n";
      if (type == "trace" && trace != nullptr) trace->add(message.value("rank", rank), message);
      if (type != "epoch" || message.at("epoch").get<int64_t>() < warm_up_) return;
      out.samples += message.at("samples").get<double>();
      out.seconds += message.at("seconds").get<double>();
      out.steps += static_cast<double>(message.at("step").get<int64_t>() -
                                       message.at("first_step").get<int64_t>() + 1);
    });
    const RunOutcome outcome = by_rank(supervisor.run(), group, places.size());
    if (outcome.error) throw *outcome.error;
    NETCL_CHECK(outcome.done[0].at("stopped") != "interrupted" && out.steps > 0,
                ErrorCode::kInterrupted, "interrupted");
    for (const Json& ready : outcome.ready)
      out.launches = std::max(out.launches, launches_of(ready));
    return out;
  }

  static int64_t launches_of(const Json& ready) {
    return ready.at("launches_per_step").get<int64_t>();
  }

  static double median_rate(const std::vector<Measured>& runs) {
    std::vector<double> values;
    for (const Measured& run : runs) values.push_back(run.samples_per_second());
    return median(values);
  }
  static double median_ms(const std::vector<Measured>& runs) {
    std::vector<double> values;
    for (const Measured& run : runs) values.push_back(run.step_ms());
    return median(values);
  }

  Json document(const std::vector<std::vector<Measured>>& alone,
                const std::vector<Measured>& together) {
    Json out = {{"config", options_.config},
                {"transport", group_.transport},
                {"shard", options_.shard},
                {"batch_size", std::min(config_.batch_size, train_->epoch_samples())},
                {"steps", together[0].steps},
                {"samples_per_second", median_rate(together)},
                {"step_ms", median_ms(together)},
                {"launches_per_step", together[0].launches},
                {"devices", Json::array()}};
    double sum = 0;
    for (size_t i = 0; i < places_.size(); ++i) {
      const double rate = median_rate(alone[i]);
      sum += rate;
      out["devices"].push_back({{"device", places_[i].label()},
                                {"name", places_[i].device.name},
                                {"samples_per_second", rate},
                                {"step_ms", median_ms(alone[i])},
                                {"cores", cores_of(places_[i])},
                                {"launches_per_step", alone[i][0].launches}});
    }
    out["sum_samples_per_second"] = sum;
    out["ratio_to_sum"] = sum > 0 ? out["samples_per_second"].get<double>() / sum : 0;
    out["rounds"] = Json::array();
    for (size_t round = 0; round < together.size(); ++round) {
      Json row = {{"together", together[round].samples_per_second()}, {"alone", Json::array()}};
      for (const auto& runs : alone) row["alone"].push_back(runs[round].samples_per_second());
      out["rounds"].push_back(std::move(row));
    }
    if (!options_.trace.empty()) out["trace"] = trace();
    return out;
  }

  // Of the device alone; null: no CPU, or divided.
  Json cores_of(const WorkerPlace& place) const {
    if (place.device.type != "cpu" || place.shares.count > 1) return nullptr;
    const int64_t all = place.device.compute_units, most = cores_.at(1);
    return most == 0 ? all : std::min(most, all);
  }

  // A run of its own, so that what is timed is not traced.
  Json trace() {
    TraceFile file;
    (void)measure(places_, &file);
    std::vector<std::string> labels;
    for (const WorkerPlace& place : places_) labels.push_back(place.label());
    file.write(options_.trace, labels);
    Json out = file.summary();
    out["file"] = options_.trace;
    return out;
  }

  const StepOptions& options_;
  TrainConfig config_;
  LoadedData data_;
  std::vector<DeviceInfo> devices_;
  std::vector<WorkerPlace> places_;
  GroupPlan group_;
  std::vector<TunedFile> tuned_;
  std::set<std::string> kept_ops_;
  std::map<size_t, int64_t> cores_;  // as in Job, by the number of workers
  std::optional<Dataset> train_;
  int64_t per_epoch_ = 1, warm_up_ = 1;
};

void print(const Json& result) {
  const auto line = [](const std::string& name, const Json& row) {
    std::cout << std::left << std::setw(14) << name << std::right << std::setw(14)
              << row.at("samples_per_second").get<double>() << " samples/s" << std::setw(12)
              << row.at("step_ms").get<double>() << " ms a step\n";
  };
  std::cout << std::fixed << std::setprecision(2);
  for (const Json& device : result.at("devices"))
    line(device.at("device").get<std::string>(), device);
  if (result.at("devices").size() > 1) line("together", result);
  std::cout << "ratio to the sum of the devices: " << result.at("ratio_to_sum").get<double>()
            << "\n";
  if (result.contains("trace")) std::cout << trace_line(result.at("trace")) << "\n";
}

int run_step(const StepOptions& options) {
  const Json result = StepBench(options).run();
  if (options.json) {
    std::cout << result.dump(2) << "\n";
  } else {
    print(result);
  }
  return 0;
}

}  // namespace

void add_bench_step(CLI::App& bench, Run& run) {
  auto options = std::make_shared<StepOptions>();
  CLI::App* command = bench.add_subcommand(
      "step", "Training steps of each device alone and of all together: the ratio to the sum");
  command->footer(
      "Example: netcl-app bench step apps/examples/digits_mlp.json --devices cpu:0/2 "
      "--trace trace.json");
  command->add_option("CONFIG", options->config, "Configuration file, as for train")->required();
  command->add_option("--devices", options->devices, "Devices, as for train")
      ->capture_default_str();
  command->add_option("--transport", options->transport, "Transport plugin, or auto")
      ->capture_default_str();
  command->add_option("--shard", options->shard, "Shares of the batch, as for train")
      ->capture_default_str();
  add_cores(*command, options->cores);
  command->add_option("--set", options->set, "Override KEY=VALUE of the configuration (repeatable)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--steps", options->steps, "Steps timed in a run, at least")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}))
      ->capture_default_str();
  command->add_option("--rounds", options->rounds, "Runs of each kind, in turn; medians count")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--trace", options->trace,
                      "Write a Chrome trace of a further run to this file, and sum it up");
  command->add_option("--trace-steps", options->trace_steps, "Steps in the trace")
      ->check(CLI::Range(int64_t{1}, int64_t{100'000}))
      ->capture_default_str();
  add_kernels(*command, *options);
  add_passes(*command, *options);
  add_common(*command, *options);
  command->callback([options, &run] { run = [options] { return run_step(*options); }; });
}

}  // namespace netcl::app
