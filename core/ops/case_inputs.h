// Inputs of an OpCase: the same for every device, run and machine, so that a device's result can be
// compared with the reference's.
#ifndef NETCL_CORE_OPS_CASE_INPUTS_H_
#define NETCL_CORE_OPS_CASE_INPUTS_H_

#include <cstdint>
#include <vector>

#include "core/ops/op.h"

namespace netcl {

// Makes the inputs from `seed`. f32 inputs are uniform in [low, high) and rounded to float, i32 and
// u8 inputs uniform in [0, int_high); fixed inputs are copied, rounded to float where f32.
// Threads: any.
std::vector<HostTensor> case_inputs(const OpCase& c, uint64_t seed);

// A tensor of uniform values in [low, high), rounded to float.
HostTensor random_tensor(const Shape& shape, double low, double high, uint64_t seed);

}  // namespace netcl

#endif  // NETCL_CORE_OPS_CASE_INPUTS_H_
