// Inputs of an OpCase: the same for every device, run and machine, so that a device's result can be
// compared with the reference's.
#ifndef NETCL_CORE_OPS_CASE_INPUTS_H_
#define NETCL_CORE_OPS_CASE_INPUTS_H_

#include <cstdint>
#include <vector>

#include "core/ops/op.h"

namespace netcl {

// Makes the inputs from `seed`. Float inputs are uniform in [low, high), integers and
// bool uniform in [0, int_high); fixed inputs are copied. All are rounded to their type.
// Threads: any.
std::vector<HostTensor> case_inputs(const OpCase& c, uint64_t seed);

// The row's cases with its flexible f32 inputs (OpRow::half_storage) held as `dtype` instead.
std::vector<OpCase> typed_cases(const OpRow& row, DType dtype);

// A tensor of uniform values in [low, high), rounded to its type.
HostTensor random_tensor(const TensorDesc& desc, double low, double high, uint64_t seed);
// The same, f32.
HostTensor random_tensor(const Shape& shape, double low, double high, uint64_t seed);

}  // namespace netcl

#endif  // NETCL_CORE_OPS_CASE_INPUTS_H_
