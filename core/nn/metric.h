// Metrics as sums in a step's graphs, so that every sample counts once on any number of replicas.
//
// The training graph carries the cheap ones only (the hits of `accuracy`); evaluation has all. What
// the sums mean together is read by whoever has added them up (apps/netcl_app/metric_values.h).
// Threads: values; tracing belongs to one thread.
#ifndef NETCL_CORE_NN_METRIC_H_
#define NETCL_CORE_NN_METRIC_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/nn/loss.h"

namespace netcl {

// Names of the sums beside loss and denominator.
namespace metric_sums {
constexpr const char* kCorrect = "correct";      // f32[]: right guesses
constexpr const char* kCount = "count";          // f32[]: rows or elements that count; only where
                                                 // the denominator is something else
constexpr const char* kConfusion = "confusion";  // f32[C,C]: rows are classes, columns guesses
constexpr const char* kSquared = "squared";      // f32[]: squared errors
constexpr const char* kAbsolute = "absolute";    // f32[]: errors without sign
}  // namespace metric_sums

// "top5" -> 5; nothing for another name.
std::optional<int64_t> top_k_of(const std::string& metric);
// Names that a configuration may ask for; "top5" stands for top1, top2, ...
const std::vector<std::string>& metric_names();
bool is_metric(const std::string& name);
// Whether the confusion matrix is needed for it: confusion, per_class, precision, recall, f1,
// macro_f1.
bool needs_confusion(const std::string& metric);

using NamedSum = std::pair<std::string, ValueId>;

// Records the sums of the metrics. Errors: kUsage for a metric that is unknown or does not go with
// the loss.
std::vector<NamedSum> trace_metrics(const std::vector<std::string>& metrics, const LossSpec& loss,
                                    const LossSums& sums, const Compared& sides, bool training,
                                    Graph& graph, Constants& constants, const Place& place);

}  // namespace netcl

#endif  // NETCL_CORE_NN_METRIC_H_
