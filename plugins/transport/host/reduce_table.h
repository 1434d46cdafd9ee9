// The reduction loops of one instruction set, and what reduce.cc passes to them.
#ifndef NETCL_PLUGINS_TRANSPORT_HOST_REDUCE_TABLE_H_
#define NETCL_PLUGINS_TRANSPORT_HOST_REDUCE_TABLE_H_

#include <cstddef>
#include <cstdint>

namespace netcl::host_transport {

struct ReduceJob {
  const void* const* inputs;
  const float* weights;  // of each input; read by the float means only
  float total_weight;    // likewise
  uint32_t n_inputs;
  void* out;
  size_t count;
};

using ReduceLoop = void (*)(const ReduceJob&);

// Formats and operations in the order of the tables' rows and columns.
enum Format { kF32, kF16, kBf16, kI32, kI64, kU8, kFormats };
enum Operation { kSum, kMax, kMin, kProd, kMean, kOperations };

struct ReduceTable {
  ReduceLoop loop[2][kFormats][kOperations];  // [1]: with streaming stores
};

// reduce_baseline.cc: SSE2, which every x86-64 has.
const ReduceTable& baseline_reductions();
// reduce_avx2.cc: needs AVX2 and F16C.
const ReduceTable& avx2_reductions();

}  // namespace netcl::host_transport

#endif  // NETCL_PLUGINS_TRANSPORT_HOST_REDUCE_TABLE_H_
