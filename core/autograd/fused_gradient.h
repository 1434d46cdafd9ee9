// The gradient of a fused op is a fused op, too: kernels may compute it, and its body is what the
// walk records for the forward body.
#ifndef NETCL_CORE_AUTOGRAD_FUSED_GRADIENT_H_
#define NETCL_CORE_AUTOGRAD_FUSED_GRADIENT_H_

#include <memory>
#include <vector>

#include "core/ops/fused.h"
#include "core/ops/op.h"

namespace netcl {

// "<op>.grad" of `forward`. `given`: per output of the forward op, whether a gradient comes back to
// it; `needed`: per input, whether its gradient is asked for. The body computes with those that
// are given for those that are needed; the inputs and outputs are the same whatever they say.
// Errors: kUsage for an op in the body without a gradient.
std::shared_ptr<const FusedOp> gradient_of(const std::shared_ptr<const FusedOp>& forward,
                                           const std::vector<bool>& given,
                                           const std::vector<bool>& needed);

// Gradient rule of a fused node: records its gradient as one node. Gradients that do not come back
// are zeros for the kernels.
Grads fused_gradient(const GradCall& call);

}  // namespace netcl

#endif  // NETCL_CORE_AUTOGRAD_FUSED_GRADIENT_H_
