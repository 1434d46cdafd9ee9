// Element-wise reduction of the ranks' contributions, on the CPU.
//
// Every result element is ((in_0 op in_1) op in_2) op ..., in rank order, whatever the block, slice
// or chunk it is computed in and whatever instructions the processor has. Integers wrap. max and
// min keep the first of equal values (so of +0 and -0) and pass NaN on. f16 and bf16 are computed
// in f32 and rounded once. Every NaN result is the one quiet NaN (f32 0x7fc00000, f16 0x7e00, bf16
// 0x7fc0), because the hardware's choice of payload depends on the order of operands, which a
// compiler may swap.
//
// MEAN of floats: weights become f32; ((w0 x0 + w1 x1) + ...) without fused steps, divided by the
// weights' sum, which is added in double and becomes f32. Inputs of weight 0 are not read; if no
// input is left, every result is NaN. MEAN of integers: the sum, which does not
// wrap, by n, cut towards zero.
// Threads: any.
#ifndef NETCL_PLUGINS_TRANSPORT_HOST_REDUCE_H_
#define NETCL_PLUGINS_TRANSPORT_HOST_REDUCE_H_

#include <cstddef>
#include <cstdint>

namespace netcl::host_transport {

// Bytes of one element of a netcl_dtype_e; 0 for a number that is none.
size_t element_bytes(uint32_t dtype);

// True if `reduce` knows the pair.
bool can_reduce(uint32_t dtype, uint32_t redop);

// Which instructions compute. The results' bits are the same.
enum class Isa { kBaseline, kAvx2 };
// The best that this processor has.
Isa best_isa();

struct ReduceOptions {
  const double* weights = nullptr;  // of each input, for MEAN; or nullptr: all 1
  // Writes past the caches: for results that nobody reads soon, of more than the caches hold.
  bool stream = false;
  Isa isa = best_isa();
};

// Reduces `count` elements of `n_inputs` (at least 1) arrays into `out`, which overlaps none.
// All pointers are aligned to the element.
void reduce(uint32_t dtype, uint32_t redop, const void* const* inputs, uint32_t n_inputs, void* out,
            size_t count, const ReduceOptions& options = {});

}  // namespace netcl::host_transport

#endif  // NETCL_PLUGINS_TRANSPORT_HOST_REDUCE_H_
