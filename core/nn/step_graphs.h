// The four graphs of a training run, traced from a model's configuration:
//   train   x, labels, random -> sums of loss, denominator and metrics, and the gradient of the
//           loss *sum* with respect to every parameter. Sums of shards add up to the batch's.
//   eval    x, labels -> sums of loss, denominator and all metrics, no gradients
//   forward x -> the model's output, as in evaluation
//   update and accumulate: see update_graph.h
// and the arenas in which parameters and gradients lie. The gradient arena begins with the sums, so
// that one all-reduce carries everything that replicas must add up.
#ifndef NETCL_CORE_NN_STEP_GRAPHS_H_
#define NETCL_CORE_NN_STEP_GRAPHS_H_

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/passes.h"
#include "core/nn/arena.h"
#include "core/nn/constants.h"
#include "core/nn/layer_type.h"
#include "core/nn/loss.h"
#include "core/nn/metric.h"
#include "core/nn/tracer.h"
#include "core/nn/update_graph.h"
#include "core/optim/optimizer.h"

namespace netcl {

struct StepSpec {
  Shape input;                      // of one sample
  DType input_dtype = DType::kF32;  // kI32: tokens
  DType label_dtype = DType::kI32;  // kF32: targets
  Shape label_shape;                // of one sample's label; [] is a class
  nlohmann::ordered_json layers;    // the model's list of layers
  LossSpec loss;
  std::vector<std::string> metrics = {"accuracy"};
  Optimizer optimizer;
  DType precision = DType::kF32;  // of activations and products; parameters stay f32. kF16: the
                                  // loss is scaled (loss_scale.h)
  std::function<std::string(const std::string& path)> locate;  // see TraceOptions
  std::set<std::string> without_passes;                        // names of core/graph/passes.h
  std::set<std::string> kept_ops;                              // see Graph::keep_ops
};

// Names of externals and outputs of the graphs (update_graph.h has the update's); parameters and
// statistics go by their slot's name, gradients by "grad/" and that name, the next values of
// statistics by "next/" and that name.
namespace step_names {
constexpr const char* kX = "x";                      // f32[B, input...] or i32
constexpr const char* kLabels = "labels";            // i32[B], or as StepSpec says
constexpr const char* kOutput = "output";            // of the forward graph
constexpr const char* kRandom = "random";            // i32[8], see kernels/README.md
constexpr const char* kLoss = "loss";                // a sum, f32[]
constexpr const char* kDenominator = "denominator";  // a sum, f32[]
}  // namespace step_names

struct StepGraphs {
  std::vector<Slot> slots;        // the parameters, in the order of the model
  std::vector<Slot> statistics;   // what training changes without a gradient, in the same order
  ArenaLayout parameters;         // in the order in which backward yields their gradients
  ArenaLayout gradients;          // the sums, then the gradients in the same order
  ArenaLayout statistic_values;   // of the statistics
  int64_t sums_floats = 0;        // size of the sums at the beginning of the gradient arena
  std::vector<std::string> sums;  // their names
  ArenaLayout eval_sums;          // every sum of the evaluation graph
  Constants constants;            // what the graphs need beside parameters and batches
  int64_t num_outputs = 0;        // classes that the model tells apart; 0 for float targets
  int64_t vocabulary = 0;         // tokens that its embedding knows; 0: not known
  UpdatePlan plan;                // groups and states of the update
  bool loss_scaled = false;
  Graph train, eval, update, accumulate, forward;
  std::vector<PassEffect> passes;  // on the training graph

  int64_t num_parameters() const;  // trained numbers
  // Bytes of the largest sum that the training graph adds up over the replicas; 0: none.
  size_t largest_all_reduce() const;
};

// Errors: kUsage, with place and path, for a model that does not fit together.
StepGraphs build_step_graphs(const StepSpec& spec, LayerProvider& layers);

}  // namespace netcl

#endif  // NETCL_CORE_NN_STEP_GRAPHS_H_
