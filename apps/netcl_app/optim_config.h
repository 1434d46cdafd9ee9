// The parts of a training configuration that say how parameters change: optimizer, schedule, ema
// and init_from. Threads: values; read by many.
//
//   "optimizer": {"type": "adamw", "lr": 1e-3, "clip_norm": 1, "groups": [
//       {"match": "*.bias|*norm*", "weight_decay": 0}, {"match": "layers.0.*", "frozen": true}]},
//   "schedule": {"type": "cosine", "unit": "epoch", "warmup_epochs": 2, "min_lr": 1e-5},
//   "ema": {"decay": 0.999}, "init_from": "pretrained.safetensors"
//
// Defaults of an optimizer are those of Optimizer::of(type), of a schedule those of Schedule, with
// unit "step" and step_size 1000.
#ifndef NETCL_APPS_NETCL_APP_OPTIM_CONFIG_H_
#define NETCL_APPS_NETCL_APP_OPTIM_CONFIG_H_

#include <string>

#include "core/base/json_doc.h"
#include "core/optim/optimizer.h"
#include "core/optim/schedule.h"

namespace netcl::app {

struct ScheduleConfig {
  Schedule schedule;
  double min_lr = 0;                 // the least rate
  bool scale_lr_by_devices = false;  // lr times the number of workers
};

// Initial parameters from a file.
struct InitFrom {
  std::string path;   // absolute; "": none
  std::string match;  // the slots that are taken from it, patterns as in groups; "": all
};

// Errors of all: kUsage, with place, key, what was expected and the nearest known name.
Optimizer parse_optimizer(const ConfigView& view);
ScheduleConfig parse_schedule(const ConfigView& view, double lr);
void parse_ema(const ConfigView& view, Optimizer& optimizer);

// All values with their defaults; they parse again to the same.
Json resolved_optimizer(const Optimizer& optimizer);
Json resolved_schedule(const ScheduleConfig& config);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_OPTIM_CONFIG_H_
