// What the rows of optimiser steps share: the table of blocks, and the divided gradient.
// Threads: any (pure functions).
#ifndef NETCL_CORE_OPS_OPTIM_BLOCKS_H_
#define NETCL_CORE_OPS_OPTIM_BLOCKS_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/ops/op.h"

namespace netcl {
namespace optim_blocks {

constexpr int64_t kBlock = 128;   // floats of an arena that belong to one slot and one group
constexpr int64_t kHyper = 16;    // floats of `hyper` a group
constexpr int64_t kFrozen = 255;  // the group of blocks that never change

inline int64_t num_blocks(int64_t n) { return (n + kBlock - 1) / kBlock; }
// An element of the table: the group in the low 8 bits, the slot above them.
constexpr int32_t entry(int64_t group, int64_t slot) {
  return static_cast<int32_t>(slot << 8 | group);
}

// The group of element i, of a table as the reference holds it.
inline int64_t group_of(const HostTensor& blocks, size_t i) {
  return static_cast<int64_t>(blocks.data[i / kBlock]) & 255;
}
inline double divided(double sum, double divisor) { return divisor == 0 ? 0 : sum / divisor; }

// The gradients begin at element grad_offset of input `grad`, which is at least that much longer
// than the n parameters: so the arena that replicas reduce, sums and all, is passed whole.
// Errors: kUsage.
void require_gradients(const OpCall& call, size_t grad, int64_t n);

// A table for test cases: block b has the slot b / 2 and its group counts up with the slots; every
// third slot is frozen.
std::vector<double> case_blocks(int64_t n);

}  // namespace optim_blocks
}  // namespace netcl

#endif  // NETCL_CORE_OPS_OPTIM_BLOCKS_H_
