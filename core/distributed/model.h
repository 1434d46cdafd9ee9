// Model: layers and the shape of a sample, checked against the layers that plugins offer.
#ifndef NETCL_CORE_DISTRIBUTED_MODEL_H_
#define NETCL_CORE_DISTRIBUTED_MODEL_H_

#include <initializer_list>
#include <vector>

#include "core/nn/layers.h"
#include "core/nn/step_graphs.h"
#include "core/runtime/runtime.h"

namespace netcl {

class Model {
 public:
  // `input`: the shape of one sample; left out, it is what a Linear at the beginning takes.
  // Errors: kUsage for no layers, no known input, or a layer type that no plugin offers; kPlugin.
  Model(Runtime& runtime, std::vector<LayerSpec> layers, Shape input = {});

  Runtime& runtime() const { return *runtime_; }
  const Shape& input() const { return input_; }

  // Traces the model; `spec` says all but input and layers. Errors: kUsage for layers that do not
  // fit together, also where one of them has other inputs than the program says.
  StepGraphs trace(StepSpec spec) const;

 private:
  void check_inputs(const StepGraphs& graphs) const;

  Runtime* runtime_;
  std::vector<LayerSpec> layers_;
  Shape input_;
};

// Layers one after the other: Sequential(runtime, {Linear(784, 256), Relu(), Linear(256, 10)}).
class Sequential : public Model {
 public:
  Sequential(Runtime& runtime, std::initializer_list<LayerSpec> layers, Shape input = {})
      : Model(runtime, layers, std::move(input)) {}
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_MODEL_H_
