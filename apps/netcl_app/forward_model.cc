#include "apps/netcl_app/forward_model.h"

#include "apps/netcl_app/open_device.h"
#include "apps/netcl_app/probe.h"
#include "apps/netcl_app/tuned_setup.h"
#include "core/base/environment.h"
#include "core/runtime/own_kernels.h"

namespace netcl::app {

ForwardModel::ForwardModel(const std::string& checkpoint, const std::string& device,
                           const CommonOptions& options, int64_t max_rows) {
  const std::filesystem::path file = find_checkpoint(checkpoint);
  path_ = file.string();
  const Checkpoint saved = read_checkpoint(file);
  NETCL_CHECK(saved.state.contains("data_set"), ErrorCode::kCheckpoint, path_,
              ": it does not say what its data looked like (it is of an older version); go on "
              "training from it for a step, which writes that");
  data_ = DataShape::from_json(saved.state["data_set"]);
  config_.emplace(parse_train_config(JsonDoc::parse(saved.state.at("config").dump(), path_), "/"));
  // Nothing is compared with labels here.
  config_->metrics.clear();
  config_->loss.balanced = false;
  config_->loss.spec.class_weights.clear();

  const std::vector<DeviceInfo> devices = probe_devices().require_devices();
  info_ = device.empty() ? devices.front() : select_one(device, devices);
  const Logger log = stderr_logger(options.quiet);
  device_ = std::make_unique<Device>(find_device(info_), environment::cache_dir(), log);
  queue_ = Queue::create(*device_);
  plugins_ =
      std::make_unique<PluginHost>(options.plugin_options(), std::vector<DeviceInfo>{info_}, log);
  check_pins(options.pins(), *plugins_);
  kernels_ = std::make_unique<KernelChoice>(*plugins_, options.pins(),
                                            tuned_options(options.tuned_files(*plugins_), log));
  layers_ = std::make_unique<LayerSet>(*plugins_);
  optimizer_ = optimizer_of(*config_);
  graphs_ =
      build_step_graphs(step_spec_of(*config_, optimizer_, data_, {},
                                     ops_with_own_kernels(*plugins_, {info_}, options.pins())),
                        *layers_);
  for (const Graph::Place& place : graphs_.forward.outputs()) {
    if (place.name != step_names::kOutput) continue;
    // Per sample: a batch folded into another dimension is unfolded.
    std::vector<int64_t> dims = graphs_.forward.desc(place.value).shape.dims();
    if (dims[0] == -1) {
      dims.erase(dims.begin());
    } else {
      dims[0] = -dims[0];
    }
    output_shape_ = Shape(std::move(dims));
  }
  require_room(graphs_, max_rows, info_);
  const size_t bytes = static_cast<size_t>(graphs_.gradients.num_floats()) * sizeof(float);
  const cl::Buffer gradients = device_->make_buffer(bytes, "the gradients");
  replica_ = std::make_unique<Replica>(graphs_, optimizer_, *kernels_, queue_, gradients, gradients,
                                       max_rows);
  load_into(*replica_, saved, /*with_state=*/false, path_);
}

std::vector<float> ForwardModel::run(const void* x, int64_t rows) {
  replica_->stage(x, nullptr, rows);
  replica_->forward(rows);
  return replica_->read_output(rows);
}

}  // namespace netcl::app
