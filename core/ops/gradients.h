// Small pieces that gradient rules share. They only record ops. Recording may move the descriptions
// that Recorder::desc() refers to: rules copy what they still need. Threads: those of the recorder.
#ifndef NETCL_CORE_OPS_GRADIENTS_H_
#define NETCL_CORE_OPS_GRADIENTS_H_

#include <string>
#include <vector>

#include "core/ops/op.h"

namespace netcl {

// Sums `grad` over the axes along which a value of shape `target` was broadcast to grad's shape.
// Returns a value of shape `target` (grad itself if the shapes are equal).
ValueId reduce_to(Recorder& recorder, ValueId grad, Shape target);

// The gradient of output 0.
inline ValueId dy0(const GradCall& c) { return *c.dy[0]; }

// x * factor + offset.
ValueId scaled(Recorder& recorder, ValueId x, double factor, double offset = 0);

// Gradient rule of a unary op whose own backward op is named: dx = op(dy, x) or op(dy, y), with the
// same attributes.
std::function<Grads(const GradCall&)> grad_from_input(const std::string& op);
std::function<Grads(const GradCall&)> grad_from_output(const std::string& op);

}  // namespace netcl

#endif  // NETCL_CORE_OPS_GRADIENTS_H_
