// Element-wise reduction of the ranks' contributions, on the CPU.
//
// Every result element is ((in_0 op in_1) op in_2) op ..., in rank order, whatever the block, slice
// or chunk it is computed in. Integers wrap. max and min keep the first of equal values (so of +0
// and -0) and pass NaN on. Every NaN result is the one quiet NaN 0x7fc00000, because the hardware's
// choice of payload depends on the order of operands, which a compiler may swap.
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

// Reduces `count` elements of `n_inputs` (at least 1) arrays into `out`, which overlaps none.
void reduce(uint32_t dtype, uint32_t redop, const void* const* inputs, uint32_t n_inputs, void* out,
            size_t count);

}  // namespace netcl::host_transport

#endif  // NETCL_PLUGINS_TRANSPORT_HOST_REDUCE_H_
