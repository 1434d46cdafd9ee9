// The two 16-bit float formats on the host: f16 (IEEE 754 binary16) and bf16 (the upper half of an
// f32). Conversions round to the nearest value, ties to even, as the kernels' stores do;
// not-a-number stays so. Threads: any (pure functions).
#ifndef NETCL_CORE_TENSOR_HALF_H_
#define NETCL_CORE_TENSOR_HALF_H_

#include <cstdint>

#include "core/tensor/shape.h"

namespace netcl {

uint16_t f16_from_float(float x);
float f16_to_float(uint16_t bits);
uint16_t bf16_from_float(float x);
float bf16_to_float(uint16_t bits);

// The value of `dtype` nearest to x; integers and bool keep x.
double rounded_to(DType dtype, double x);

}  // namespace netcl

#endif  // NETCL_CORE_TENSOR_HALF_H_
