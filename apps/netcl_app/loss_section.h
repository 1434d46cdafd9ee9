// The keys "loss" and "metrics" of a training configuration. Threads: values.
//
//   "loss": "cross_entropy"
//   "loss": {"type": "cross_entropy", "label_smoothing": 0.1, "ignore_index": -100,
//            "class_weights": [1, 2.5] or "balanced"}
//   "metrics": ["accuracy", "top5", {"type": "top_k", "k": 3}, "confusion"]
#ifndef NETCL_APPS_NETCL_APP_LOSS_SECTION_H_
#define NETCL_APPS_NETCL_APP_LOSS_SECTION_H_

#include <string>
#include <vector>

#include "core/base/json_doc.h"
#include "core/nn/loss.h"

namespace netcl::app {

struct LossConfig {
  LossSpec spec;
  bool balanced = false;  // class weights from the training labels' frequencies
};

// Errors: kUsage with place, path and the nearest name.
LossConfig parse_loss(const ConfigView& view);
Json resolved_loss(const LossConfig& loss);

// Without `view` the metrics that go with the loss. Errors: as parse_loss.
std::vector<std::string> parse_metrics(const ConfigView& view);
std::vector<std::string> usual_metrics(const LossConfig& loss);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_LOSS_SECTION_H_
