#include "core/graph/memory_plan.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace netcl {

MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes, size_t alignment) {
  const auto aligned = [&](size_t n) {
    return (std::max<size_t>(n, 1) + alignment - 1) / alignment * alignment;
  };
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return lifetimes[a].size_bytes > lifetimes[b].size_bytes;
  });

  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<size_t> placed;  // sorted by offset
  for (const size_t i : order) {
    const size_t size = aligned(lifetimes[i].size_bytes);
    size_t offset = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
    for (const size_t j : placed) {
      if (lifetimes[j].last < lifetimes[i].first || lifetimes[i].last < lifetimes[j].first)
        continue;
      if (plan.offsets[j] >= offset + size && plan.offsets[j] - offset < best_gap) {
        best = offset;
        best_gap = plan.offsets[j] - offset;
      }
      offset = std::max(offset, plan.offsets[j] + aligned(lifetimes[j].size_bytes));
    }
    plan.offsets[i] = best != SIZE_MAX ? best : offset;
    plan.total_bytes = std::max(plan.total_bytes, plan.offsets[i] + size);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), i,
                         [&](size_t a, size_t b) { return plan.offsets[a] < plan.offsets[b]; }),
        i);
  }
  return plan;
}

}  // namespace netcl
