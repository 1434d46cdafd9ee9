// The configuration of a training run: what `train CONFIG` reads, checked and with every default
// filled in. Threads: values; read by many.
//
//   {"model": {"input": [64], "layers": [{"type": "linear", "out": 10}]},
//    "data": {"format": "csv", "train": "digits.csv.gz", "split": [0.8, 0.2]}}
//
// Defaults: loss "cross_entropy", metrics ["accuracy"] (mse and mae for losses of numbers),
// optimizer
// {"type": "sgd", "lr": 0.01}, schedule {"type": "constant"}, batch_size 32, accumulate 1,
// micro_shards 0 (off), epochs 1, seed 0, precision "fp32"; optimizer and schedule: see
// optim_config.h. Data: scale 1, label -1, header "auto", delimiter ',' (tsv: a tab); text: unit
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
#include "apps/netcl_app/optim_config.h"
#include "core/base/json_doc.h"

namespace netcl::app {

struct TrainConfig {
  explicit TrainConfig(ConfigView model_view) : model(std::move(model_view)) {}

  std::string name;            // the file's name without directory and extension
  ConfigView model;            // {"input": [...], "layers": [...]}, with places for later checks
  std::vector<int64_t> input;  // model.input: shape of one sample
  DataConfig data;
  LossConfig loss;
  std::vector<std::string> metrics = {"accuracy"};
  Optimizer optimizer;
  ScheduleConfig schedule;
  InitFrom init_from;
  std::string precision = "fp32";  // fp32, bf16, fp16 or tf32
  int64_t batch_size = 32;         // samples of an optimiser's step
  int64_t accumulate = 1;          // passes over a batch, on every device, before a step
  // Above 0: a step gives the same bits on any number of equal devices, because its batch is cut
  // into this many parts whose gradients are added up in their order
  // (core/distributed/micro_shards.h).
  int64_t micro_shards = 0;
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
