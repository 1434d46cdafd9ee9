// Dynamic loss scaling for f16 (Micikevicius et al., Mixed precision training, 2018). The loss is
// multiplied by a scale before the backward part, so that small gradients do not vanish in 16 bits;
// the update divides it out again. A step whose gradients overflow is skipped and halves the scale;
// many good ones double it. The state lives on the device, and every replica, seeing the same
// reduced gradients, computes the same next one.
#ifndef NETCL_CORE_NN_LOSS_SCALE_H_
#define NETCL_CORE_NN_LOSS_SCALE_H_

#include <array>

#include "core/graph/graph.h"

namespace netcl {

namespace step_names {
constexpr const char* kLossScale = "loss_scale";  // f32[2]: scale, good steps since it changed
}  // namespace step_names

namespace loss_scale {

constexpr double kFirst = 1024, kLeast = 1, kMost = 16777216;  // the loss is a sum over the batch
constexpr double kGrowthSteps = 2000;

inline std::array<float, 2> first_state() { return {static_cast<float>(kFirst), 0.0f}; }

// Declares the state in a graph. Shape: [2].
ValueId state(Graph& graph);
// The scale alone. Shape: [] or, with `rank` 1, [1].
ValueId scale(Graph& graph, ValueId state, size_t rank);
// `divisor` if `norm` is finite, else not a number, which skips the step. Shape of all: [1].
ValueId skip_if_not_finite(Graph& graph, ValueId divisor, ValueId norm);
// The state after a step whose gradients had `norm` [1]; asks for it as the output kLossScale.
void advance(Graph& graph, ValueId state, ValueId norm);

}  // namespace loss_scale
}  // namespace netcl

#endif  // NETCL_CORE_NN_LOSS_SCALE_H_
