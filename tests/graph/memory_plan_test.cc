// Temporaries that live at the same time never overlap, and others share memory.
#include "core/graph/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace netcl {
namespace {

bool alive_together(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

void check_plan(const std::vector<Lifetime>& lifetimes, const MemoryPlan& plan, size_t alignment) {
  ASSERT_EQ(plan.offsets.size(), lifetimes.size());
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    ASSERT_EQ(plan.offsets[i] % alignment, 0u);
    ASSERT_LE(plan.offsets[i] + lifetimes[i].size_bytes, plan.total_bytes);
    for (size_t j = 0; j < i; ++j) {
      if (!alive_together(lifetimes[i], lifetimes[j])) continue;
      const bool apart = plan.offsets[i] + lifetimes[i].size_bytes <= plan.offsets[j] ||
                         plan.offsets[j] + lifetimes[j].size_bytes <= plan.offsets[i];
      ASSERT_TRUE(apart) << i << " and " << j << " overlap";
    }
  }
}

TEST(MemoryPlanTest, RandomLifetimesNeverOverlap) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const size_t alignment = size_t{64} << (random() % 4);
    std::vector<Lifetime> lifetimes(1 + random() % 60);
    size_t sum = 0;
    for (Lifetime& l : lifetimes) {
      l.size_bytes = random() % 5 == 0 ? random() % 3 : random() % 5000;
      l.first = random() % 40;
      l.last = l.first + random() % 10;
      sum += l.size_bytes + alignment;
    }
    const MemoryPlan plan = plan_memory(lifetimes, alignment);
    check_plan(lifetimes, plan, alignment);
    EXPECT_LE(plan.total_bytes, sum);
  }
}

TEST(MemoryPlanTest, AChainNeedsTwoPlaces) {
  std::vector<Lifetime> chain;
  for (size_t i = 0; i < 20; ++i) chain.push_back({1024, i, i + 1});
  EXPECT_EQ(plan_memory(chain, 64).total_bytes, 2048u);
}

TEST(MemoryPlanTest, TheTightestGapIsTaken) {
  // Two large ones leave gaps of 256 and 128 bytes; 128 bytes go into the smaller one.
  const std::vector<Lifetime> lifetimes = {
      {1024, 0, 9}, {512, 0, 3}, {512, 5, 9}, {128, 4, 4}, {384, 0, 9}};
  const MemoryPlan plan = plan_memory(lifetimes, 64);
  check_plan(lifetimes, plan, 64);
  EXPECT_EQ(plan.total_bytes, 1024u + 512 + 384);
}

TEST(MemoryPlanTest, NothingNeedsNothing) { EXPECT_EQ(plan_memory({}, 64).total_bytes, 0u); }

}  // namespace
}  // namespace netcl
