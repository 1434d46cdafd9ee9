// A trained model on one device in this process: inputs to outputs, for predict and generate.
// Threads: one.
#ifndef NETCL_APPS_NETCL_APP_FORWARD_MODEL_H_
#define NETCL_APPS_NETCL_APP_FORWARD_MODEL_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/netcl_app/checkpoint.h"
#include "apps/netcl_app/config.h"
#include "apps/netcl_app/model_setup.h"
#include "apps/netcl_app/options.h"
#include "core/cl/device.h"
#include "core/runtime/kernel_choice.h"
#include "core/runtime/layer_set.h"

namespace netcl::app {

class ForwardModel {
 public:
  // Reads the checkpoint and loads it onto the device ("": the first one). `max_rows`: the most
  // samples of one run. Errors: kCheckpoint, kDevice, kUsage, kPlugin.
  ForwardModel(const std::string& checkpoint, const std::string& device,
               const CommonOptions& options, int64_t max_rows);

  const std::string& path() const { return path_; }  // of the checkpoint's file
  const TrainConfig& config() const { return *config_; }
  const DataShape& data() const { return data_; }
  // Shape of the output for one sample, such as [10] or [T,V].
  const Shape& output_shape() const { return output_shape_; }
  std::string device() const { return info_.selector; }

  // `x`: rows samples as the model takes them (f32 or i32), at most max_rows. Returns the outputs
  // one after the other, before any softmax.
  std::vector<float> run(const void* x, int64_t rows);

 private:
  std::string path_;
  std::optional<TrainConfig> config_;
  DataShape data_;
  DeviceInfo info_;
  std::unique_ptr<Device> device_;
  std::shared_ptr<Queue> queue_;
  std::unique_ptr<PluginHost> plugins_;
  std::unique_ptr<KernelChoice> kernels_;
  std::unique_ptr<LayerSet> layers_;
  Optimizer optimizer_;
  StepGraphs graphs_;
  Shape output_shape_;
  std::unique_ptr<Replica> replica_;
};

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_FORWARD_MODEL_H_
