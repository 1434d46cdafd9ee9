// Losses by name: from a model's output and the labels to the sum of losses and its denominator.
//
// Both are sums over a shard, so any shards of a batch add up to it; the mean is taken once, after
// the reduction. Threads: values; tracing belongs to one thread.
#ifndef NETCL_CORE_NN_LOSS_H_
#define NETCL_CORE_NN_LOSS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/nn/constants.h"

namespace netcl {

struct LossSpec {
  std::string type = "cross_entropy";
  // cross_entropy, nll: a label with this value counts for nothing, and its weight is 0.
  int64_t ignore_index = -100;
  double label_smoothing = 0;        // cross_entropy: this much of the target is spread evenly
  std::vector<float> class_weights;  // cross_entropy, nll: one a class; empty: all 1
  bool pad_weights = false;          // classes behind the last weight have weight 0
  double delta = 1;                  // huber's delta, smooth_l1's beta
  bool log_target = false;           // kl_div: the targets are logarithms

  bool takes_classes() const { return type == "cross_entropy" || type == "nll"; }
};

// The names that LossSpec::type may have.
const std::vector<std::string>& loss_names();

// The two sides of a loss, brought to one shape.
// Classes: output f32[N,C], labels i32[N], where N is the batch or, for sequences, B*T.
// Targets: output and labels f32 of one shape.
struct Compared {
  ValueId output = 0, labels = 0;
  int64_t classes = 0;  // 0: float targets
};

// Shape: classes: output [B,C] with labels [B], or [B,T,...,C] with [B,T,...]. Targets: as many
// elements a sample on both sides. Errors: kUsage, naming both shapes; `place` (may be empty) turns
// a path of the configuration into "file:line: path: ".
using Place = std::function<std::string(const std::string& path)>;
Compared compare(const LossSpec& spec, Graph& graph, ValueId output, ValueId labels,
                 const Place& place);

struct LossSums {
  ValueId loss = 0, denominator = 0;  // f32[]
  // Whether the denominator is the number of rows (classes) or elements (targets) that count.
  bool counts = true;
};

// Denominator: classes, the sum of the weights of the labels that are not ignored; targets, the
// number of elements (kl_div: of samples, which makes it the mean divergence).
// Errors: kUsage for an unknown loss, or class weights that do not fit.
LossSums trace_loss(const LossSpec& spec, Graph& graph, const Compared& sides, Constants& constants,
                    const Place& place);

// Records the sum of all elements, f32[].
ValueId total(Graph& graph, ValueId value);
// Records a f32 tensor of one value.
ValueId filled(Graph& graph, const Shape& shape, double value);

}  // namespace netcl

#endif  // NETCL_CORE_NN_LOSS_H_
