// The fused ops of a layer as questions to kernel sets, with answers: what the layer's recorded ops
// make of given inputs in double precision. The oracle of a layer's own kernels.
#ifndef NETCL_CORE_NN_FUSED_CASES_H_
#define NETCL_CORE_NN_FUSED_CASES_H_

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/nn/layer_type.h"
#include "core/ops/op.h"

namespace netcl {

// A fused op or the gradient of one, with concrete shapes.
struct FusedCase {
  // Its name and attributes; `infer` gives `out`, and `reference` runs the recorded ops.
  OpRow row;
  std::vector<TensorDesc> in, out;
  Attrs attrs;
  // Inputs follow from others in a gradient: the forward op's outputs. Given inputs of any values,
  // gives those the ones that they must have.
  std::function<void(std::vector<HostTensor>& in)> complete;
};

// The case with values for all inputs, made from `seed`: floats in [-1, 1), integers below every
// dimension of the float inputs, since they are mostly places in one. For OpCheck and case_inputs.
OpCase with_inputs(const FusedCase& c, uint64_t seed);

// Those of one layer with inputs `in` (concrete; dimension 0 is the batch), in the order in which
// they would run, each question once. `layer` is an entry of a configuration: "type" and its keys.
// Errors: kUsage, kPlugin, as when the layer is traced in a model; kUsage for inputs of different
// batches.
std::vector<FusedCase> fused_cases(LayerProvider& layers, const nlohmann::ordered_json& layer,
                                   const std::vector<TensorDesc>& in);

}  // namespace netcl

#endif  // NETCL_CORE_NN_FUSED_CASES_H_
