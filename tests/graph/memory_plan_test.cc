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

void check_plan(const std::vector<Lifetime>& lifetimes, const MemoryPlan& plan) {
  ASSERT_EQ(plan.slot.size(), lifetimes.size());
  for (size_t i = 0; i < lifetimes.size(); ++i) {
    ASSERT_LT(plan.slot[i], plan.slot_bytes.size());
    ASSERT_LE(lifetimes[i].size_bytes, plan.slot_bytes[plan.slot[i]]);
    for (size_t j = 0; j < i; ++j) {
      if (!alive_together(lifetimes[i], lifetimes[j])) continue;
      ASSERT_NE(plan.slot[i], plan.slot[j]) << i << " and " << j << " share a slot";
    }
  }
}

TEST(MemoryPlanTest, RandomLifetimesNeverOverlap) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    std::vector<Lifetime> lifetimes(1 + random() % 60);
    size_t sum = 0;
    for (Lifetime& l : lifetimes) {
      l.size_bytes = random() % 5 == 0 ? random() % 3 : random() % 5000;
      l.first = random() % 40;
      l.last = l.first + random() % 10;
      sum += l.size_bytes;
    }
    const MemoryPlan plan = plan_memory(lifetimes);
    check_plan(lifetimes, plan);
    EXPECT_LE(plan.total_bytes(), sum);
  }
}

TEST(MemoryPlanTest, AChainNeedsTwoSlots) {
  std::vector<Lifetime> chain;
  for (size_t i = 0; i < 20; ++i) chain.push_back({1024, i, i + 1});
  EXPECT_EQ(plan_memory(chain).slot_bytes, (std::vector<size_t>{1024, 1024}));
}

TEST(MemoryPlanTest, TheSmallestFreeSlotIsTaken) {
  const std::vector<Lifetime> lifetimes = {{1024, 0, 3}, {512, 0, 3}, {384, 5, 9}, {128, 5, 9}};
  const MemoryPlan plan = plan_memory(lifetimes);
  check_plan(lifetimes, plan);
  EXPECT_EQ(plan.slot, (std::vector<size_t>{0, 1, 1, 0}));
  EXPECT_EQ(plan.total_bytes(), 1024u + 512);
}

TEST(MemoryPlanTest, NothingNeedsNothing) {
  EXPECT_EQ(plan_memory({}).total_bytes(), 0u);
  EXPECT_EQ(plan_memory({{0, 0, 1}}).slot_bytes, (std::vector<size_t>{0}));
}

}  // namespace
}  // namespace netcl
