// Losses for a step function that is written from ops: recorded on any Recorder, as sums over the
// rows with the denominator that makes a mean of them (see loss.h for those of configurations).
#ifndef NETCL_CORE_NN_STEP_LOSSES_H_
#define NETCL_CORE_NN_STEP_LOSSES_H_

#include "core/nn/loss.h"
#include "core/ops/recorder.h"

namespace netcl {

// Softmax and cross-entropy of logits [B,C] with classes i32[B]; ignored labels (-100) count for
// nothing. Errors of all: kUsage, naming the shapes.
LossSums cross_entropy(Recorder& recorder, ValueId logits, ValueId classes);
// Squared differences of two values of one shape; the denominator counts elements.
LossSums mean_squared_error(Recorder& recorder, ValueId output, ValueId targets);

}  // namespace netcl

#endif  // NETCL_CORE_NN_STEP_LOSSES_H_
