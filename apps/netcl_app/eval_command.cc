// netcl-app eval: the metrics of a checkpoint on its test data.
#include <algorithm>
#include <iostream>

#include "apps/netcl_app/checkpoint.h"
#include "apps/netcl_app/commands.h"
#include "apps/netcl_app/formats/load.h"
#include "apps/netcl_app/group_plan.h"
#include "apps/netcl_app/metric_values.h"
#include "apps/netcl_app/model_setup.h"
#include "apps/netcl_app/options.h"
#include "apps/netcl_app/probe.h"
#include "apps/netcl_app/supervisor.h"
#include "core/runtime/own_kernels.h"

namespace netcl::app {

namespace {

struct EvalOptions : CommonOptions {
  std::string checkpoint, devices = "all", transport = "auto";
  std::vector<std::string> set;
};

int run_eval(const EvalOptions& options) {
  const std::filesystem::path file = find_checkpoint(options.checkpoint);
  const Checkpoint checkpoint = read_checkpoint(file);
  Json stored = checkpoint.state.at("config");
  // A test file of its own takes the place of a part of the training file.
  const bool other_test =
      std::any_of(options.set.begin(), options.set.end(),
                  [](const std::string& text) { return text.rfind("data.test=", 0) == 0; });
  if (other_test) stored.at("data").erase("split");
  const auto doc = JsonDoc::parse(stored.dump(), file.string());
  for (const std::string& assignment : options.set) doc->apply_override(assignment);
  TrainConfig config = parse_train_config(doc, std::filesystem::current_path());
  // Every character once, whatever training drew.
  config.data.text.samples_per_epoch = 0;
  config.data.text.stride = config.data.text.context;
  std::vector<std::string> classes;
  if (checkpoint.state.contains("data_set"))
    classes = DataShape::from_json(checkpoint.state["data_set"]).classes;
  const LoadedData data = load_data(config.data, classes);
  const std::vector<DeviceInfo> devices = probe_devices().require_devices();
  const std::vector<WorkerPlace> places = resolve_selectors(options.devices, devices);
  const PluginHost plugins(options.plugin_options(), devices, stderr_logger(options.quiet));

  Job job;
  job.mode = "eval";
  job.config = config.resolved();
  job.config_name = file.string();
  job.plugins = options.plugin_options();
  job.pins = options.pins();
  job.tuned = options.tuned_files(plugins);
  check_pins(job.pins, plugins);
  job.kept_ops = ops_with_own_kernels(plugins, devices_of(places), job.pins);
  GroupWishes wishes;
  wishes.transport = options.transport;
  const GroupPlan group = plan_group(wishes, places, plugins);
  job.transport = group.transport;
  job.shard = "even";
  job.resume = std::filesystem::absolute(file).string();
  const Dataset* test = data.test ? &*data.test : nullptr;
  const std::vector<WorkerPlace> workers = worker_places(group, places, job);
  Supervisor supervisor(workers, job, data.train, test, [&](uint32_t, const Json& message) {
    if (message.at("type") == "note")
      stderr_logger(options.quiet).warning(message.at("text").get<std::string>());
  });
  const RunOutcome outcome = by_rank(supervisor.run(), group, places.size());
  if (outcome.error) throw *outcome.error;
  NETCL_CHECK(outcome.done[0].is_object(), ErrorCode::kInterrupted, "interrupted");
  const Json result = {{"metrics", outcome.done[0].at("metrics")},
                       {"samples", outcome.done[0].at("samples")}};
  if (options.json) {
    std::cout << result.dump(2) << "\n";
  } else {
    std::cout << metric_table(result.at("metrics")) << "over " << result.at("samples") << " "
              << (test != nullptr ? "test" : "training") << " samples\n";
  }
  return 0;
}

}  // namespace

void add_eval_command(CLI::App& app, Run& run) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* command = app.add_subcommand("eval", "Metrics of a checkpoint on its test data");
  command->footer(
      "Example: netcl-app eval runs/digits_mlp-20260101-120000/checkpoints/best.safetensors");
  command
      ->add_option("CHECKPOINT", options->checkpoint,
                   "Checkpoint file, or run directory (its last checkpoint)")
      ->required();
  command->add_option("--devices", options->devices, "Devices, as for train")
      ->capture_default_str();
  command->add_option("--transport", options->transport, "Transport plugin, or auto")
      ->capture_default_str();
  command
      ->add_option("--set", options->set,
                   "Override KEY=VALUE of the stored configuration (repeatable)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_kernels(*command, *options);
  add_common(*command, *options);
  command->callback([options, &run] { run = [options] { return run_eval(*options); }; });
}

}  // namespace netcl::app
