// The fused ops of a layer as questions to kernel sets, with answers: what the layer's recorded ops
// make of given inputs in double precision. The oracle of a layer's own kernels.
#ifndef NETCL_CORE_NN_FUSED_CASES_H_
#define NETCL_CORE_NN_FUSED_CASES_H_

#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/nn/layer_type.h"
#include "core/ops/op.h"

namespace netcl {

// A fused op or the gradient of one, with concrete shapes.
struct FusedCase {
  // Its name; `reference` runs the recorded ops, and `cases` has this one. It lives as long as the
  // case.
  OpRow row;
  std::vector<TensorDesc> in, out;
  Attrs attrs;
  // Inputs follow from others in a gradient: the forward op's outputs. Given inputs of any values,
  // gives those the ones that they must have.
  std::function<void(std::vector<HostTensor>& in)> complete;
};

// Those of one layer with inputs `in` (concrete; dimension 0 is the batch), in the order in which
// they would run, each question once. `layer` is an entry of a configuration: "type" and its keys.
// Errors: kUsage, kPlugin, as when the layer is traced in a model; kUsage for inputs of different
// batches.
std::vector<FusedCase> fused_cases(LayerProvider& layers, const nlohmann::ordered_json& layer,
                                   const std::vector<TensorDesc>& in);

}  // namespace netcl

#endif  // NETCL_CORE_NN_FUSED_CASES_H_
