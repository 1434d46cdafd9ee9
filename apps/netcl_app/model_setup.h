// From a training configuration to the core's descriptions.
#ifndef NETCL_APPS_NETCL_APP_MODEL_SETUP_H_
#define NETCL_APPS_NETCL_APP_MODEL_SETUP_H_

#include "apps/netcl_app/config.h"
#include "core/data/dataset.h"
#include "core/nn/step_graphs.h"
#include "core/optim/optimizer.h"
#include "core/optim/schedule.h"
#include "core/runtime/plugin_host.h"
#include "core/runtime/transport.h"

namespace netcl::app {

Optimizer optimizer_of(const TrainConfig& config);
Schedule schedule_of(const TrainConfig& config, size_t n_workers = 1);
// The base rate, times the number of workers where the configuration asks for it.
double learning_rate_of(const TrainConfig& config, size_t n_workers);

// What a model must know of a data set: kept in checkpoints, so that it can be used without one.
struct DataShape {
  DType input_dtype = DType::kF32, label_dtype = DType::kI32;
  Shape label_shape;
  std::vector<std::string> classes;     // their names; of a text its characters
  std::vector<float> balanced_weights;  // of the classes that occur, by their frequency

  static DataShape of(const Dataset& data);
  Json json() const;
  static DataShape from_json(const Json& json);  // Errors: kCheckpoint.
};

// `locate` of the result points into the configuration's document.
StepSpec step_spec_of(const TrainConfig& config, const Optimizer& optimizer, const DataShape& data,
                      std::set<std::string> without_passes = {},
                      std::set<std::string> kept_ops = {});

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_MODEL_SETUP_H_
