// Naming what went wrong when training arrives at something that is no number.
#ifndef NETCL_CORE_DISTRIBUTED_DIVERGENCE_H_
#define NETCL_CORE_DISTRIBUTED_DIVERGENCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/distributed/replica.h"

namespace netcl {

// "linear.weight f32[64,10] (3 of 640 values)", the first in the order of the model with a value
// that is not finite, or "". The arena holds each slot under `prefix` and its name.
std::string first_bad_tensor(const std::vector<Slot>& slots, const ArenaLayout& layout,
                             const std::string& prefix, const std::vector<float>& arena);

struct NoNumber {
  int64_t epoch = 0, step = 0;  // epoch from 0, step from 1
  const char* what = "the loss";
  double value = 0;
  double last_loss = 0;                 // the last finite one, or NaN
  std::vector<int64_t> sample_indices;  // of the step's global batch
};

// Fails with the place and the likely cause: a sample, a parameter or a gradient. Every rank sees
// the same sums, samples and parameters, so every rank says the same. Errors: kTraining, always.
[[noreturn]] void report_no_number(const NoNumber& found, Replica& replica, const Dataset& train);

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_DIVERGENCE_H_
