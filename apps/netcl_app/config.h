// The configuration of a training run: what `train CONFIG` reads, checked and with every default
// filled in. Threads: values; read by many.
//
//   {"model": {"input": [64], "layers": [{"type": "linear", "out": 10}]},
//    "data": {"format": "csv", "train": "digits.csv.gz", "split": [0.8, 0.2]}}
//
// Defaults: loss "cross_entropy", metrics ["accuracy"] (mse and mae for losses of numbers),
// optimizer {"type": "sgd", "lr": 0.01}, schedule {"type": "constant"}, batch_size 32, epochs 1,
// seed 0. Optimizer: momentum 0, dampening 0, nesterov false, weight_decay 0 (adamw 0.01), lr 0.01
// (adamw 0.001), betas [0.9, 0.999], eps 1e-8. Schedule: warmup_steps 0, min_lr 0, step_size 1000
// steps, gamma 0.1. Data: scale 1, label -1, header "auto", delimiter ',' (tsv: a tab); text: unit
// "character", context 128, stride the context (1 with samples_per_epoch).
#ifndef NETCL_APPS_NETCL_APP_CONFIG_H_
#define NETCL_APPS_NETCL_APP_CONFIG_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/netcl_app/formats/data_config.h"
#include "apps/netcl_app/loss_section.h"
#include "core/base/json_doc.h"

namespace netcl::app {

struct OptimizerConfig {
  std::string type = "sgd";  // "sgd", "adamw"
  double lr = 0.01;
  double momentum = 0.0;
  double dampening = 0.0;
  bool nesterov = false;
  double weight_decay = 0.0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
};

struct ScheduleConfig {
  std::string type = "constant";  // "constant", "cosine", "linear", "step"
  int64_t warmup_steps = 0;       // the rate climbs linearly from 0 over these
  double min_lr = 0.0;            // cosine, linear: the rate at the last step
  int64_t step_size = 1000;       // step: steps between two drops
  double gamma = 0.1;             // step: factor of a drop
};

struct TrainConfig {
  explicit TrainConfig(ConfigView model_view) : model(std::move(model_view)) {}

  std::string name;            // the file's name without directory and extension
  ConfigView model;            // {"input": [...], "layers": [...]}, with places for later checks
  std::vector<int64_t> input;  // model.input: shape of one sample
  DataConfig data;
  LossConfig loss;
  std::vector<std::string> metrics = {"accuracy"};
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  int64_t batch_size = 32;
  int64_t epochs = 1;
  uint64_t seed = 0;

  // All values with their defaults and absolute paths; parses again to the same configuration.
  Json resolved() const;
};

// Reads a configuration file and applies `overrides` ("key=value") in order. Relative data paths
// are taken against data.dir, which itself is relative to the configuration's folder (or, when it
// comes from --set, to the current directory); without data.dir a path is relative to the
// configuration's folder (from --set: to the current directory).
// Errors: kUsage, with file, line, column, key, what was expected and the nearest known name.
TrainConfig load_train_config(const std::filesystem::path& path,
                              const std::vector<std::string>& overrides = {});

// The same for a document at hand; `folder` is what relative paths refer to.
TrainConfig parse_train_config(const std::shared_ptr<const JsonDoc>& doc,
                               const std::filesystem::path& folder);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_CONFIG_H_
