#include "core/graph/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace netcl {

size_t MemoryPlan::total_bytes() const {
  return std::accumulate(slot_bytes.begin(), slot_bytes.end(), size_t{0});
}

MemoryPlan plan_memory(const std::vector<Lifetime>& lifetimes) {
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return lifetimes[a].size_bytes > lifetimes[b].size_bytes;
  });

  MemoryPlan plan;
  plan.slot.resize(lifetimes.size());
  std::vector<std::vector<size_t>> users;  // of each slot
  for (const size_t i : order) {
    const auto is_free = [&](size_t slot) {
      return std::none_of(users[slot].begin(), users[slot].end(), [&](size_t j) {
        return lifetimes[j].first <= lifetimes[i].last && lifetimes[i].first <= lifetimes[j].last;
      });
    };
    // Slots fall in size, so the last free one is the smallest.
    size_t slot = users.size();
    while (slot > 0 && !is_free(slot - 1)) --slot;
    if (slot == 0) {
      users.emplace_back();
      plan.slot_bytes.push_back(lifetimes[i].size_bytes);
      slot = users.size();
    }
    users[slot - 1].push_back(i);
    plan.slot[i] = slot - 1;
  }
  return plan;
}

}  // namespace netcl
