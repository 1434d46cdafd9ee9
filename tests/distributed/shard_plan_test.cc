// How a batch is split: the option's text, counts that sum, and who may change it.
#include "core/distributed/shard_plan.h"

#include <gtest/gtest.h>

#include <cmath>
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

TEST(ShardPlanTest, AutoTakesOtherWeights) {
  ShardPlan plan("auto", 2);
  plan.set_weights({3, 1});
  EXPECT_EQ(plan.weights(), (std::vector<double>{0.75, 0.25}));
  EXPECT_EQ(plan.counts(64), (std::vector<int64_t>{48, 16}));
  plan.set_weights({0, 5});
  EXPECT_EQ(plan.counts(9), (std::vector<int64_t>{0, 9}));
}

TEST(ShardPlanTest, RefusesWeightsThatAreNone) {
  ShardPlan plan("auto", 2), even("even", 2), given("3,1", 2);
  for (const std::vector<double>& bad :
       std::vector<std::vector<double>>{{}, {1}, {1, 2, 3}, {0, 0}, {1, -1}, {1, NAN}}) {
    EXPECT_THROW(plan.set_weights(bad), Error);
  }
  EXPECT_THROW(even.set_weights({1, 2}), Error);
  EXPECT_THROW(given.set_weights({1, 2}), Error);
  EXPECT_EQ(given.counts(64), (std::vector<int64_t>{48, 16}));
}

TEST(ShardPlanTest, AFixedPlanStays) {
  ShardPlan plan("auto", 2);
  plan.set_weights({3, 1});
  plan.fix();
  EXPECT_FALSE(plan.is_auto());
  EXPECT_THROW(plan.set_weights({1, 1}), Error);
  EXPECT_EQ(plan.counts(64), (std::vector<int64_t>{48, 16}));
}

}  // namespace
}  // namespace netcl
