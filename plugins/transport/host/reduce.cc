#include "plugins/transport/host/reduce.h"

#include <vector>

#include "core/abi/netcl_plugin.h"
#include "plugins/transport/host/reduce_table.h"

namespace netcl::host_transport {
namespace {

Format format_of(uint32_t dtype) {
  switch (dtype) {
    case NETCL_F32:
      return kF32;
    case NETCL_F16:
      return kF16;
    case NETCL_BF16:
      return kBf16;
    case NETCL_I32:
      return kI32;
    case NETCL_I64:
      return kI64;
    case NETCL_U8:
      return kU8;
    default:
      return kFormats;
  }
}

Operation operation_of(uint32_t redop) {
  switch (redop) {
    case NETCL_SUM:
      return kSum;
    case NETCL_MAX:
      return kMax;
    case NETCL_MIN:
      return kMin;
    case NETCL_PROD:
      return kProd;
    case NETCL_MEAN:
      return kMean;
    default:
      return kOperations;
  }
}

}  // namespace

size_t element_bytes(uint32_t dtype) {
  switch (dtype) {
    case NETCL_F32:
    case NETCL_I32:
      return 4;
    case NETCL_F16:
    case NETCL_BF16:
      return 2;
    case NETCL_I64:
      return 8;
    case NETCL_U8:
    case NETCL_BOOL:
      return 1;
    default:
      return 0;
  }
}

bool can_reduce(uint32_t dtype, uint32_t redop) {
  return format_of(dtype) != kFormats && operation_of(redop) != kOperations;
}

Isa best_isa() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c") ? Isa::kAvx2
                                                                          : Isa::kBaseline;
}

void reduce(uint32_t dtype, uint32_t redop, const void* const* inputs, uint32_t n_inputs, void* out,
            size_t count, const ReduceOptions& options) {
  const Format format = format_of(dtype);
  const Operation operation = operation_of(redop);
  if (format == kFormats || operation == kOperations || count == 0) return;
  const ReduceTable& table = options.isa == Isa::kAvx2 ? avx2_reductions() : baseline_reductions();
  const ReduceLoop loop = table.loop[options.stream ? 1 : 0][format][operation];
  ReduceJob job{inputs, nullptr, 0, n_inputs, out, count};
  const bool float_mean =
      operation == kMean && (format == kF32 || format == kF16 || format == kBf16);
  if (!float_mean) return loop(job);
  std::vector<const void*> used;
  std::vector<float> weights;
  double total = 0;
  for (uint32_t r = 0; r < n_inputs; ++r) {
    const double weight = options.weights == nullptr ? 1.0 : options.weights[r];
    if (weight == 0) continue;
    used.push_back(inputs[r]);
    weights.push_back(static_cast<float>(weight));
    total += weight;
  }
  job.total_weight = static_cast<float>(total);
  if (used.empty()) {  // 0 / 0: any input, times NaN
    used.push_back(inputs[0]);
    weights.push_back(__builtin_nanf(""));
  }
  job.inputs = used.data();
  job.weights = weights.data();
  job.n_inputs = static_cast<uint32_t>(used.size());
  loop(job);
}

}  // namespace netcl::host_transport
