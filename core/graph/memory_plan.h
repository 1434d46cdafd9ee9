// Gives temporaries slots of a workspace so that those alive at the same time never share one.
//
// A slot is a buffer of its own, not a part of one: NVIDIA's driver (580) crashes when sub-buffers
// that partly overlap are released, so temporaries of different sizes must not cut up one buffer.
#ifndef NETCL_CORE_GRAPH_MEMORY_PLAN_H_
#define NETCL_CORE_GRAPH_MEMORY_PLAN_H_

#include <cstddef>
#include <vector>

namespace netcl {

struct Lifetime {
  size_t size_bytes = 0;
  size_t first = 0, last = 0;  // positions of the first and last node that touch it, inclusive
};

struct MemoryPlan {
  std::vector<size_t> slot;        // of each lifetime
  std::vector<size_t> slot_bytes;  // of each slot, falling
  size_t total_bytes() const;
};

// Greedy, largest first: each temporary takes the smallest slot that is free for its lifetime, so a
// slot is as large as its first user.
MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes);

}  // namespace netcl

#endif  // NETCL_CORE_GRAPH_MEMORY_PLAN_H_
