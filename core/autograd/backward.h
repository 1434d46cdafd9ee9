// Reverse-mode differentiation over any Recorder: the tape, the traced graph and the host reference
// use the same walk and the same gradient rules.
#ifndef NETCL_CORE_AUTOGRAD_BACKWARD_H_
#define NETCL_CORE_AUTOGRAD_BACKWARD_H_

#include <optional>
#include <vector>

#include "core/ops/recorder.h"

namespace netcl {

// Nodes [begin, end) of a recorder.
struct NodeRange {
  size_t begin = 0, end = 0;
};

// Records the gradients of `output` with respect to `wanted`, given `seed`, the gradient of
// `output` itself (none: ones). Only nodes that lead from a wanted value to the output are walked,
// in reverse order of recording; contributions are added with the op `add`. Integer values carry no
// gradient: what depends on a wanted value only through them counts as constant.
// Returns one entry per wanted value; nullopt: the output does not depend on it.
// Shape: each gradient has the shape of its value; the seed that of the output.
// Errors: kUsage if the output is not f32, the seed does not fit, a value is unknown, or an op on
// the way has no gradient (the message names it).
// Threads: those of the recorder.
// `recompute`: ranges of nodes, in order and apart, whose values are not kept for the backward
// part: when the walk reaches such a range, its nodes are recorded again from the values that
// entered it.
std::vector<std::optional<ValueId>> gradients(Recorder& recorder, ValueId output,
                                              std::optional<ValueId> seed,
                                              const std::vector<ValueId>& wanted,
                                              const std::vector<NodeRange>& recompute = {});

// An output and the gradient that it is given.
struct Seeded {
  ValueId output, seed;
};
// The same for several outputs at once: gradients of the sum of output * seed.
std::vector<std::optional<ValueId>> gradients(Recorder& recorder,
                                              const std::vector<Seeded>& outputs,
                                              const std::vector<ValueId>& wanted);

}  // namespace netcl

#endif  // NETCL_CORE_AUTOGRAD_BACKWARD_H_
