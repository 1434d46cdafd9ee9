// How a batch is split: the option's text, counts that sum, and adaptation with hysteresis.
#include "core/distributed/shard_plan.h"

#include <gtest/gtest.h>

#include <numeric>

#include "core/base/error.h"

namespace netcl {
namespace {

std::string error_of(const std::string& text, size_t n_ranks) {
  try {
    ShardPlan(text, n_ranks);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    return e.message();
  }
  return "no error";
}

TEST(ShardPlanTest, RefusesWhatIsNoPlan) {
  for (const char* text : {"fast", "1,x", "1,,1", "", "1,-1", "1,inf", "1,nan", "1;1"}) {
    EXPECT_NE(error_of(text, 2).find("expected auto, even or numbers such as 3,1"),
              std::string::npos)
        << text;
  }
  EXPECT_EQ(error_of("3,1", 3), "--shard 3,1: 2 weights for 3 workers; give one weight a worker");
  EXPECT_EQ(error_of("0,0", 2), "--shard 0,0: at least one weight must be above 0");
}

TEST(ShardPlanTest, CountsSumToTheBatch) {
  for (const char* text : {"even", "auto", "3,1,2", "0,1,0", "1e-9,1,1", "0.1,0.2,0.7"}) {
    const ShardPlan plan(text, 3);
    for (const int64_t batch : {0, 1, 2, 3, 7, 64, 1031}) {
      const std::vector<int64_t> counts = plan.counts(batch);
      ASSERT_EQ(counts.size(), 3u);
      EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), batch) << text;
      for (const int64_t n : counts) EXPECT_GE(n, 0);
    }
  }
}

TEST(ShardPlanTest, WeightsAreShares) {
  EXPECT_EQ(ShardPlan("3,1", 2).counts(64), (std::vector<int64_t>{48, 16}));
  EXPECT_EQ(ShardPlan("0,1", 2).counts(9), (std::vector<int64_t>{0, 9}));
  EXPECT_EQ(ShardPlan("even", 3).counts(7), (std::vector<int64_t>{3, 2, 2}));
}

TEST(ShardPlanTest, OnlyAutoAdapts) {
  ShardPlan even("even", 2), given("3,1", 2), single("auto", 1);
  EXPECT_FALSE(even.adapt({1, 9}, ShardPlan::kFirstChange));
  EXPECT_FALSE(given.adapt({1, 9}, ShardPlan::kFirstChange));
  EXPECT_FALSE(single.adapt({1}, ShardPlan::kFirstChange));
  EXPECT_EQ(even.weights(), (std::vector<double>{0.5, 0.5}));
}

TEST(ShardPlanTest, AdaptsToEqualFinishTimes) {
  ShardPlan plan("auto", 2);
  EXPECT_TRUE(plan.adapt({1e-3, 3e-3}, ShardPlan::kFirstChange));
  EXPECT_NEAR(plan.weights()[0], 0.75, 1e-12);
  EXPECT_NEAR(plan.weights()[1], 0.25, 1e-12);
  EXPECT_EQ(plan.counts(64), (std::vector<int64_t>{48, 16}));
}

TEST(ShardPlanTest, ASmallGainChangesNothing) {
  ShardPlan plan("auto", 2);
  EXPECT_FALSE(plan.adapt({1.00, 1.05}, ShardPlan::kFirstChange));  // would gain 2.4 %
  EXPECT_EQ(plan.weights(), (std::vector<double>{0.5, 0.5}));
  EXPECT_TRUE(plan.adapt({1.00, 1.10}, ShardPlan::kFirstChange));  // 4.8 %
}

TEST(ShardPlanTest, AShareChangesByAtMostTheGivenFactor) {
  ShardPlan plan("auto", 2);
  EXPECT_TRUE(plan.adapt({1, 9}, ShardPlan::kMaxChange));
  EXPECT_NEAR(plan.weights()[0], 0.6, 1e-12);
  EXPECT_NEAR(plan.weights()[1], 0.4, 1e-12);
}

TEST(ShardPlanTest, ARankThatWasNotMeasuredKeepsItsWeight) {
  ShardPlan plan("auto", 4);
  EXPECT_FALSE(plan.adapt({0, 0, 0, 0}, ShardPlan::kFirstChange));
  EXPECT_TRUE(plan.adapt({1, 0, 2, 0}, ShardPlan::kFirstChange));
  EXPECT_NEAR(plan.weights()[0], 1.0 / 3, 1e-12);
  EXPECT_NEAR(plan.weights()[1], 0.25, 1e-12);
  EXPECT_NEAR(plan.weights()[2], 1.0 / 6, 1e-12);
  EXPECT_NEAR(plan.weights()[3], 0.25, 1e-12);
}

}  // namespace
}  // namespace netcl
