// netcl-app train: reads configuration and data, starts the workers, writes the run's directory.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>

#include "apps/netcl_app/checkpoint.h"
#include "apps/netcl_app/commands.h"
#include "apps/netcl_app/core_choice.h"
#include "apps/netcl_app/data_checks.h"
#include "apps/netcl_app/explain.h"
#include "apps/netcl_app/formats/load.h"
#include "apps/netcl_app/group_plan.h"
#include "apps/netcl_app/init_from.h"
#include "apps/netcl_app/metric_values.h"
#include "apps/netcl_app/model_setup.h"
#include "apps/netcl_app/options.h"
#include "apps/netcl_app/probe.h"
#include "apps/netcl_app/progress.h"
#include "apps/netcl_app/run_dir.h"
#include "apps/netcl_app/supervisor.h"
#include "apps/netcl_app/trace_file.h"
#include "apps/netcl_app/transport_probe.h"
#include "apps/netcl_app/update_choice.h"
#include "core/base/text.h"
#include "core/distributed/shard_plan.h"
#include "core/runtime/layer_set.h"
#include "core/runtime/own_kernels.h"

namespace netcl::app {
namespace fs = std::filesystem;

namespace {

constexpr int64_t kMostCount = 1'000'000'000;  // of epochs and steps on the command line

struct TrainOptions : CommonOptions {
  std::string config, devices = "all", transport = "auto", shard = "auto", update = "auto", out,
                      resume, precision, on_failure = "stop", cores = "auto";
  std::vector<std::string> set;
  int64_t epochs = 0, max_steps = 0, seed = -1;
  int64_t bucket_bytes = 0;
  double stall_timeout = 0;
  std::string trace;
  int64_t trace_steps = 20;
  bool dry_run = false, explain = false, reproducible = false;

  std::vector<std::string> overrides() const {
    std::vector<std::string> all = set;
    if (epochs > 0) all.push_back("epochs=" + std::to_string(epochs));
    if (!precision.empty()) all.push_back("precision=\"" + precision + "\"");
    if (seed >= 0) all.push_back("seed=" + std::to_string(seed));
    return all;
  }
};

// Everything that is known before the first worker starts.
struct Setup {
  TrainConfig config;
  LoadedData data;
  std::vector<DeviceInfo> devices;
  std::vector<WorkerPlace> places;
  GroupPlan group;
  std::string update;
  std::vector<TunedFile> tuned;
  std::set<std::string> kept_ops;
  int64_t cores = 0;  // as in Job
};

// Traces the model here, so that its errors name the user's file and nothing was started. Returns
// the work of a worker's pass and update.
StepWork check_model(const TrainConfig& config, const LoadedData& data, size_t n_workers,
                     PluginHost& plugins) {
  check_input(data.train, Shape(config.input), data.train_source);
  LayerSet layers(plugins);
  const StepGraphs graphs = build_step_graphs(
      step_spec_of(config, optimizer_of(config), DataShape::of(data.train)), layers);
  check_reproducible(config, graphs, n_workers);
  if (!config.init_from.path.empty()) check_initial(graphs, config.init_from);
  check_data(config, data, graphs);
  return work_of_step(graphs, config, n_workers);
}

// What is asked for is done or refused, never replaced.
void check_precision(const TrainConfig& config, const std::vector<WorkerPlace>& places) {
  std::vector<std::string> names;
  for (const WorkerPlace& place : places) names.push_back(place.device.selector);
  NETCL_CHECK(config.precision != "tf32", ErrorCode::kDevice,
              "precision tf32: no kernel set here "
              "computes products in TF32 on ",
              join(names, ", "), "; choose fp32, or bf16 or fp16 (16-bit storage, f32 arithmetic)");
}

GroupPlan choose_group(const TrainOptions& options, const std::vector<WorkerPlace>& places,
                       const PluginHost& plugins) {
  GroupWishes wishes;
  wishes.transport = options.transport;
  wishes.on_failure = failure_policy_from(options.on_failure);
  wishes.time = [&](const std::string& staged, const std::string& shared) {
    return probe_transports(places, {staged, shared}, options.plugin_options(), plugins);
  };
  return plan_group(wishes, places, plugins);
}

Setup prepare(const TrainOptions& options, TrainConfig config) {
  (void)schedule_of(config);
  LoadedData data = load_data(config.data);
  const std::vector<DeviceInfo> devices = probe_devices().require_devices();
  std::vector<WorkerPlace> places = resolve_selectors(options.devices, devices);
  check_precision(config, places);
  const ShardPlan check_shard(options.shard, places.size());
  PluginHost plugins(options.plugin_options(), devices, stderr_logger(options.quiet));
  check_pins(options.pins(), plugins);
  const StepWork work = check_model(config, data, places.size(), plugins);
  const std::vector<DeviceInfo> used = devices_of(places);
  const std::string update = choose_update(options.update, used, config);
  GroupPlan group = choose_group(options, places, plugins);
  return {std::move(config),
          std::move(data),
          devices,
          std::move(places),
          std::move(group),
          update,
          options.tuned_files(plugins),
          ops_with_own_kernels(plugins, used, options.pins()),
          most_cores(options.cores, work)};
}

Json environment_of(const Setup& setup, const RunOutcome& outcome) {
  Json out = {{"netcl", "0.1.0"},
              {"transport", setup.group.transport},
              {"update", setup.update},
              {"workers", Json::array()}};
  if (!setup.group.why.empty()) out["transport_why"] = setup.group.why;
  if (!setup.group.probe.is_null()) out["transport_probe"] = setup.group.probe;
  if (setup.places.size() > 1) {  // the shares at the end
    out["shard_weights"] = Json::array();
    for (const Json& done : outcome.done)
      out["shard_weights"].push_back(done.is_object() ? done.at("share") : Json());
  }
  for (size_t r = 0; r < setup.places.size(); ++r) {
    Json worker = {{"rank", r},
                   {"device", setup.places[r].label()},
                   {"info", to_json(setup.places[r].device)}};
    if (outcome.ready[r].is_object()) {
      for (const char* key : {"kernels", "questions", "launches_per_step", "workspace_bytes",
                              "programs_built", "programs_from_disk"}) {
        worker[key] = outcome.ready[r].at(key);
      }
    }
    out["workers"].push_back(worker);
  }
  return out;
}

// Collects what the workers say into metrics.jsonl and the final document.
class Recording {
 public:
  // `start`: the state of the checkpoint that the run goes on from, or null.
  Recording(RunDir& dir, Progress& progress, const Setup& setup, const Json& start)
      : dir_(dir), progress_(progress), setup_(setup) {
    if (!start.is_object()) return;
    steps_ = start.at("step").get<int64_t>();
    epochs_ = start.at("epoch").get<int64_t>();
    if (start.contains("train")) train_loss_ = start["train"].value("loss", Json());
    if (start.contains("train") || start.contains("test"))
      metrics_ = start[start.contains("test") ? "test" : "train"];
  }

  void message(uint32_t rank, const Json& message) {
    const std::string type = message.at("type").get<std::string>();
    if (type == "step") progress_.step(message);
    if (type == "step" || type == "losses") losses(message);
    if (type == "note") progress_.line(message.at("text").get<std::string>());
    if (type == "epoch") epoch(message);
    if (type == "trace") trace_.add(message.value("rank", rank), message);
  }

  // Writes what the workers traced, if they did. Errors: kCheckpoint.
  void write_trace(const std::string& file) {
    if (file.empty()) return;
    if (trace_.empty()) return progress_.line("no step was traced: " + file + " is not written");
    std::vector<std::string> labels;
    for (const WorkerPlace& place : setup_.places) labels.push_back(place.label());
    trace_.write(file, labels);
    trace_summary_ = trace_.summary();
    trace_summary_["file"] = fs::absolute(file).string();
    progress_.line(trace_line(trace_summary_));
  }

  int64_t steps() const { return steps_; }  // of the whole run so far

  Json result(const RunOutcome& outcome) const {
    Json out;
    out["run_dir"] = fs::absolute(dir_.path()).string();
    out["epochs"] = epochs_;
    out["steps"] = steps_;
    out["samples_per_second"] = seconds_ > 0 ? samples_ / seconds_ : 0;
    out["train_loss"] = train_loss_;
    out["metrics"] = metrics_;
    out["transport"] = setup_.group.transport;
    if (!setup_.group.probe.is_null()) out["transport_probe"] = setup_.group.probe;
    out["workers"] = Json::array();
    std::string stopped = "failed";
    double seconds = 0;  // of training; waiting for another worker's checkpoints is none
    for (const Json& done : outcome.done) {
      if (!done.is_object() || !done.contains("stopped")) continue;
      const double own = done.at("seconds").get<double>();
      seconds = seconds == 0 ? own : std::min(seconds, own);
    }
    for (size_t r = 0; r < setup_.places.size(); ++r) {
      const Json& done = outcome.done[r];
      Json worker = {{"rank", r},
                     {"device", setup_.places[r].label()},
                     {"samples", 0},
                     {"share", 0},
                     {"samples_per_second", 0}};
      if (done.is_object()) {
        worker["samples"] = done.at("samples");
        worker["share"] = done.at("share");
        // All train at the same time.
        if (seconds > 0) worker["samples_per_second"] = done.at("samples").get<double>() / seconds;
        if (done.contains("account")) out["account"] = done.at("account");
        stopped = done.value("stopped", stopped);  // none of a worker that left the group
      }
      out["workers"].push_back(worker);
    }
    if (out.contains("account")) {
      for (Json& of : out["account"]["workers"]) {  // of the last generation, with its ranks
        for (Json& worker : out["workers"]) {
          if (worker.at("device") != of.at("device")) continue;
          of.erase("rank");
          worker.update(of);
          break;
        }
      }
      out["account"].erase("workers");
    }
    if (outcome.error)
      stopped = outcome.error->code() == ErrorCode::kInterrupted ? "interrupted" : "failed";
    if (trace_summary_.is_object()) out["trace"] = trace_summary_;
    out["stopped"] = stopped;
    if (outcome.error) out["error"] = outcome.error->message();
    out["failures"] = outcome.failures;
    return out;
  }

 private:
  // Steps that a failure made the workers repeat come again.
  void losses(const Json& message) {
    const Json &values = message.at("losses"), &seconds = message.at("seconds");
    int64_t step = message.at("step").get<int64_t>() - static_cast<int64_t>(values.size());
    for (size_t i = 0; i < values.size(); ++i)
      losses_[++step] = {{"loss", values[i]}, {"seconds", seconds[i]}};
  }

  void epoch(const Json& message) {
    const auto epoch = message.at("epoch").get<int64_t>();
    // An epoch's end may be repeated, too.
    if (message.at("step").get<int64_t>() <= steps_) return;
    const auto last = losses_.upper_bound(message.at("step").get<int64_t>());
    const auto first = losses_.lower_bound(message.at("first_step").get<int64_t>());
    for (auto it = first; it != last; ++it) {
      Json step = {{"step", it->first}, {"epoch", epoch + 1}};
      step.update(it->second);
      dir_.append_metrics(step);
    }
    losses_.erase(losses_.begin(), last);
    Json line = {{"epoch", epoch + 1},
                 {"steps", message.at("step")},
                 {"lr", message.at("lr")},
                 {"train", message.at("train")}};
    if (message.contains("test")) line["test"] = scalar_metrics(message.at("test"));
    if (message.contains("grad_norm")) line["grad_norm"] = message.at("grad_norm");
    if (message.contains("skipped_steps")) {
      line["skipped_steps"] = message.at("skipped_steps");
      progress_.line(str_cat(
          "epoch ", epoch + 1, ": the gradients of ", message.at("skipped_steps").get<int64_t>(),
          " steps overflowed 16 bits; they were skipped, with a smaller loss scale"));
    }
    dir_.append_metrics(line);
    progress_.epoch(message);
    if (message.at("complete").get<bool>()) epochs_ = epoch + 1;
    steps_ = message.at("step").get<int64_t>();
    samples_ += message.at("samples").get<double>();
    seconds_ += message.at("seconds").get<double>();
    train_loss_ = message.at("train").at("loss");
    metrics_ = message.contains("test") ? message.at("test") : message.at("train");
  }

  RunDir& dir_;
  Progress& progress_;
  const Setup& setup_;
  int64_t epochs_ = 0, steps_ = 0;
  double samples_ = 0, seconds_ = 0;
  Json train_loss_, metrics_ = Json::object();
  TraceFile trace_;
  Json trace_summary_;
  std::map<int64_t, Json> losses_;  // and seconds; by step, of the epoch under way
};

// `run_dir`: where it writes; empty: nowhere.
Job make_job(const TrainOptions& options, const Setup& setup, const fs::path& run_dir,
             const std::string& resume) {
  Job job;
  job.config = setup.config.resolved();
  job.config_name = (run_dir / "config.json").string();
  job.plugins = options.plugin_options();
  job.pins = options.pins();
  job.tuned = setup.tuned;
  job.transport = setup.group.transport;
  job.shard = options.shard;
  job.update = setup.update;
  job.regroups = options.shard == "auto" && setup.config.micro_shards == 0;
  job.bucket_bytes = options.bucket_bytes;
  job.without_passes = options.without_passes();
  job.kept_ops = setup.kept_ops;
  job.cores = setup.cores;
  if (!run_dir.empty()) job.checkpoints = fs::absolute(run_dir / "checkpoints").string();
  job.resume = resume;
  job.max_steps = options.max_steps;
  job.stall_seconds = options.stall_timeout;
  return job;
}

void ask_for_trace(Job& job, const TrainOptions& options, const Setup& setup, int64_t first_step) {
  if (options.trace.empty()) return;
  const int64_t batch = setup.config.batch_size;
  int64_t end = setup.config.epochs * ((setup.data.train.epoch_samples() + batch - 1) / batch);
  if (options.max_steps > 0) end = std::min(end, options.max_steps);
  const TraceWindow window =
      trace_window(first_step, std::max(end, first_step), options.trace_steps);
  job.trace_after = window.after;
  job.trace_steps = window.steps;
}

void describe_run(const Setup& setup, Progress& progress) {
  std::vector<std::string> labels;
  for (const WorkerPlace& place : setup.places)
    labels.push_back(place.label() + " (" + place.device.name + ")");
  progress.line(str_cat("training ", setup.config.name, " on ", join(labels, ", "), "; ",
                        setup.data.train.epoch_samples(), " training and ",
                        setup.data.test ? setup.data.test->num_samples() : 0, " test samples"));
  if (!setup.group.probe.is_null()) progress.line("transport " + setup.group.why);
  const std::string cores = core_note(setup.places, setup.cores);
  if (!cores.empty()) progress.line(cores);
}

// The account of a run on several devices, for people.
std::string account_text(const Json& result) {
  if (!result.contains("account")) return "";
  const Json& account = result.at("account");
  const auto number = [](const Json& json, const char* key) { return json.at(key).get<double>(); };
  const auto whole = [&](const Json& json, const char* key) {
    return static_cast<int64_t>(std::round(number(json, key)));
  };
  std::string out;
  for (const Json& worker : result.at("workers")) {
    const double change = number(worker, "percent_without");
    const double share = std::round(1000 * number(worker, "share")) / 10;
    out += str_cat(
        worker.at("device").get<std::string>(), ": ", share, " % of the samples; alone ",
        whole(worker, "solo_samples_per_second"), " samples/s; without its samples the run is ",
        std::round(std::abs(change) * 10) / 10, " % ", change < 0 ? "slower" : "faster", "\n");
  }
  return out + str_cat("all together ", whole(account, "all_samples_per_second"), " samples/s, ",
                       whole(account, "percent_of_sum"), " % of the sum of ",
                       whole(account, "sum_samples_per_second"), "; ",
                       whole(account, "exposed_communication_percent"),
                       " % of a step is communication that nothing hides\n");
}

int finish(const TrainOptions& options, const Json& result, const RunOutcome& outcome) {
  if (options.json) std::cout << result.dump(2) << "\n";
  if (outcome.error) return exit_code(outcome.error->code());  // printed when it happened
  if (result.at("stopped") == "interrupted") {
    if (!options.json)
      std::cerr << "interrupted; continue with --resume " << result.at("run_dir").get<std::string>()
                << "\n";
    return exit_code(ErrorCode::kInterrupted);
  }
  if (!options.json && !options.quiet) {
    std::cerr << metric_table(result.at("metrics")) << "train loss "
              << result.at("train_loss").dump() << ", "
              << static_cast<int64_t>(result.at("samples_per_second").get<double>())
              << " samples/s\n"
              << account_text(result) << "run directory " << result.at("run_dir").get<std::string>()
              << "\n";
  }
  return 0;
}

// Where a run that goes on begins; all empty for a new one.
struct Start {
  std::string file;       // the checkpoint
  fs::path run_dir;       // of the run that goes on in its own directory
  Checkpoint checkpoint;  // without tensors: the workers read them
};

Start find_start(const TrainOptions& options) {
  Start out;
  if (options.resume.empty()) return out;
  out.file = fs::absolute(find_checkpoint(options.resume)).lexically_normal().string();
  out.checkpoint = read_checkpoint(out.file);
  out.checkpoint.tensors = {};
  const fs::path place = fs::path(out.file).parent_path().parent_path();
  std::error_code error;
  if (fs::is_directory(options.resume, error) && fs::exists(place / "config.json", error))
    out.run_dir = place;
  return out;
}

// --resume DIRECTORY goes on in that directory; another --out, or a checkpoint file, makes a new
// run.
RunDir open_run_dir(const TrainOptions& options, const Start& start, const std::string& name) {
  if (options.out.empty()) {
    if (!start.run_dir.empty()) return RunDir::open(start.run_dir, /*resume=*/true);
    return RunDir::create(fs::current_path(), name, std::time(nullptr));
  }
  std::error_code error;
  const bool same =
      !start.file.empty() &&
      fs::equivalent(fs::path(start.file).parent_path().parent_path(), options.out, error);
  return RunDir::open(options.out, same);
}

// The plan of a step on every device, made by the workers that would train.
int explain(const TrainOptions& options, const Setup& setup) {
  Job job = make_job(options, setup, std::filesystem::path(), "");
  job.mode = "explain";
  job.config_name = options.config;
  const std::vector<WorkerPlace> workers = worker_places(setup.group, setup.places, job);
  Supervisor supervisor(workers, std::move(job), setup.data.train, nullptr,
                        [](uint32_t, const Json&) {});
  const RunOutcome outcome = by_rank(supervisor.run(), setup.group, setup.places.size());
  if (outcome.error) throw *outcome.error;
  Json plans = Json::array();
  for (size_t r = 0; r < setup.places.size(); ++r) {
    NETCL_CHECK(outcome.done[r].is_object(), ErrorCode::kInterrupted, "interrupted");
    plans.push_back(outcome.done[r].at("plan"));
    plans.back()["device"] = setup.places[r].label();
  }
  std::cout << (options.json ? explain_document(plans).dump(2) + "\n" : explain_text(plans));
  return 0;
}

int run_train(const TrainOptions& options) {
  NETCL_CHECK(std::isfinite(options.stall_timeout), ErrorCode::kUsage, "--stall-timeout ",
              options.stall_timeout, ": expected a number of seconds");
  check_trace_place(options.trace);
  (void)options.without_passes();
  TrainConfig config = load_train_config(options.config, options.overrides());
  if (options.reproducible && config.micro_shards == 0)
    config.micro_shards = usual_micro_shards(config.batch_size);
  if (options.dry_run) {
    std::cout << config.resolved().dump(2) << "\n";
    return 0;
  }
  const Start start = find_start(options);
  const Setup setup = prepare(options, std::move(config));
  if (options.explain) return explain(options, setup);
  const int64_t samples = setup.data.train.epoch_samples();
  if (!start.file.empty())
    check_resumable(start.checkpoint, setup.config.resolved(), samples, start.file);
  block_stop_signals();  // no half-written files; what arrives from here on the supervisor takes
  RunDir dir = open_run_dir(options, start, setup.config.name);
  dir.write_config(setup.config.resolved());
  Progress progress(options.quiet, setup.config.epochs,
                    (samples + setup.config.batch_size - 1) / setup.config.batch_size, samples);
  describe_run(setup, progress);
  Recording recording(dir, progress, setup, start.checkpoint.state);
  Job job = make_job(options, setup, dir.path(), start.file);
  ask_for_trace(job, options, setup, recording.steps());
  const std::vector<WorkerPlace> workers = worker_places(setup.group, setup.places, job);
  Supervisor supervisor(
      workers, std::move(job), setup.data.train, setup.data.test ? &*setup.data.test : nullptr,
      [&](uint32_t rank, const Json& message) { recording.message(rank, message); },
      [&](const Error& error) {
        progress.finish();
        std::cerr << "error: " << error.message() << std::endl;
      },
      failure_policy_from(options.on_failure));
  RunOutcome outcome = by_rank(supervisor.run(), setup.group, setup.places.size());
  progress.finish();
  try {
    dir.write_environment(environment_of(setup, outcome));
    recording.write_trace(options.trace);
  } catch (const Error& error) {
    if (!outcome.error) {
      std::cerr << "error: " << error.message() << std::endl;
      outcome.error = error;
    }
  }
  return finish(options, recording.result(outcome), outcome);
}

}  // namespace

void add_train_command(CLI::App& app, Run& run) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App* command = app.add_subcommand("train", "Train a model on one or more devices");
  command->footer("Example: netcl-app train apps/examples/digits_mlp.json --devices cpu:0/2");
  command->add_option("CONFIG", options->config, "Configuration file (JSON with comments)")
      ->required();
  command
      ->add_option("--devices", options->devices,
                   "Devices, such as all, gpu, gpu:0,cpu:0, cpu:0/2 or cpu:0/4+12")
      ->capture_default_str();
  add_cores(*command, options->cores);
  command
      ->add_option("--transport", options->transport,
                   "Transport plugin that adds gradients up, or auto: the fastest that can")
      ->capture_default_str();
  command
      ->add_option("--shard", options->shard,
                   "Shares of the batch: auto (by measured speed), even, or weights 3,1")
      ->capture_default_str();
  command
      ->add_option("--update", options->update,
                   "Who updates the parameters: every worker all of them (replicated), each its "
                   "share (sharded), or auto (sharded where devices differ in make)")
      ->capture_default_str();
  command->add_flag("--reproducible", options->reproducible,
                    "The same bits on any number of equal devices (see micro_shards)");
  command
      ->add_option(
          "--bucket-bytes", options->bucket_bytes,
          "Reduce gradients in buckets of about this many bytes (default: 25 MiB, the first "
          "1 MiB)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  command->add_option("--set", options->set, "Override KEY=VALUE of the configuration (repeatable)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--out", options->out, "Run directory (default: runs/NAME-DATE)");
  command->add_option(
      "--resume", options->resume,
      "Go on from a run directory (and in it, unless --out is given) or from a checkpoint file");
  command->add_option("--epochs", options->epochs, "Override the number of epochs")
      ->check(CLI::Range(int64_t{1}, kMostCount));
  command
      ->add_option("--max-steps", options->max_steps,
                   "Stop when the whole run has made this many steps; the schedule stays")
      ->check(CLI::Range(int64_t{1}, kMostCount));
  command
      ->add_option("--precision", options->precision,
                   "Numbers in which activations are stored: fp32, bf16, fp16 (with loss scaling)")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16", "tf32"}));
  command->add_option("--seed", options->seed, "Override the seed")
      ->check(CLI::Range(int64_t{0}, std::numeric_limits<int64_t>::max()));
  command
      ->add_option(
          "--stall-timeout", options->stall_timeout,
          "Seconds without progress, from the first step on, after which a worker counts as lost "
          "(default: 10, or 10 steps' time if that is more)")
      ->check(CLI::Range(0.001, 1e9));
  command->add_option("--trace", options->trace,
                      "Write a Chrome trace (for Perfetto) of some steps to this file");
  command
      ->add_option("--trace-steps", options->trace_steps,
                   "Steps in the trace, after ten others where the run has as many")
      ->check(CLI::Range(int64_t{1}, int64_t{100'000}))
      ->capture_default_str();
  command
      ->add_option("--on-failure", options->on_failure,
                   "When a worker dies, stalls or its device fails: stop; continue on the other "
                   "devices; or restart it")
      ->check(CLI::IsMember({"stop", "continue", "restart"}))
      ->capture_default_str();
  command->add_flag("--dry-run", options->dry_run, "Print the resolved configuration and stop");
  command->add_flag("--explain", options->explain,
                    "Print the plan of a step (nodes, kernels, launches, bytes) and stop");
  add_kernels(*command, *options);
  add_passes(*command, *options);
  add_common(*command, *options);
  command->callback([options, &run] { run = [options] { return run_train(*options); }; });
}

}  // namespace netcl::app
