// Places temporaries in one workspace so that those alive at the same time do not overlap.
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
  std::vector<size_t> offsets;  // bytes, one per lifetime
  size_t total_bytes = 0;       // size of the workspace
};

// Greedy best fit, largest first. Offsets are multiples of `alignment`.
MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes, size_t alignment);

}  // namespace netcl

#endif  // NETCL_CORE_GRAPH_MEMORY_PLAN_H_
