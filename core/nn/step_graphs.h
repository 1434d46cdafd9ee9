// The three graphs of a training run, traced from a model's configuration:
//   train   x, labels, random -> sums of loss, denominator and metrics, and the gradient of the
//           loss *sum* with respect to every parameter. Sums of shards add up to the batch's.
//   eval    x, labels -> the same sums, no gradients
//   update  gradients, hyper, denominator -> parameters and optimiser state, in place, one launch
// and the arenas in which parameters and gradients lie. The gradient arena begins with the sums, so
// that one all-reduce carries everything that replicas must add up.
#ifndef NETCL_CORE_NN_STEP_GRAPHS_H_
#define NETCL_CORE_NN_STEP_GRAPHS_H_

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/nn/arena.h"
#include "core/nn/layer_type.h"
#include "core/nn/tracer.h"
#include "core/optim/optimizer.h"

namespace netcl {

struct StepSpec {
  Shape input;                    // of one sample
  nlohmann::ordered_json layers;  // the model's list of layers
  std::string loss = "cross_entropy";
  std::vector<std::string> metrics = {"accuracy"};
  Optimizer optimizer;
  DType precision = DType::kF32;  // of activations and products; parameters stay f32
  std::function<std::string(const std::string& path)> locate;  // see TraceOptions
};

// Names of externals and outputs of the graphs; parameters and statistics go by their slot's name,
// gradients by "grad/" and that name, the next values of statistics by "next/" and that name.
namespace step_names {
constexpr const char* kX = "x";                      // f32[B, input...]
constexpr const char* kLabels = "labels";            // i32[B]
constexpr const char* kRandom = "random";            // i32[8], see kernels/README.md
constexpr const char* kHyper = "hyper";              // f32[8]
constexpr const char* kParameters = "parameters";    // the whole arena
constexpr const char* kGradients = "gradients";      // the whole arena, sums and all
constexpr const char* kLoss = "loss";                // a sum, f32[]
constexpr const char* kDenominator = "denominator";  // a sum, f32[]
constexpr const char* kCorrect = "correct";          // a sum, f32[]
constexpr const char* kDivisor = "divisor";          // f32[1]: the denominator of all replicas
}  // namespace step_names

struct StepGraphs {
  std::vector<Slot> slots;        // the parameters, in the order of the model
  std::vector<Slot> statistics;   // what training changes without a gradient, in the same order
  ArenaLayout parameters;         // in the order in which backward yields their gradients
  ArenaLayout gradients;          // the sums, then the gradients in the same order
  ArenaLayout statistic_values;   // of the statistics
  int64_t sums_floats = 0;        // size of the sums at the beginning of the gradient arena
  std::vector<std::string> sums;  // their names
  int64_t num_outputs = 0;        // classes that the model tells apart
  Graph train, eval, update;

  int64_t num_parameters() const;  // trained numbers
  // Bytes of the largest sum that the training graph adds up over the replicas; 0: none.
  size_t largest_all_reduce() const;
};

// Errors: kUsage, with place and path, for a model that does not fit together.
StepGraphs build_step_graphs(const StepSpec& spec, LayerProvider& layers);

}  // namespace netcl

#endif  // NETCL_CORE_NN_STEP_GRAPHS_H_
