// Rows for equal finish times: fixed costs, limits, multiples.
#include "core/distributed/finish_time.h"

#include <gtest/gtest.h>

#include <numeric>

namespace netcl {
namespace {

using Rows = std::vector<int64_t>;

RankCost cost(double fixed, double per_row, int64_t max_rows = 1 << 20, int64_t multiple = 1) {
  return {{fixed, per_row}, {max_rows, multiple}, true};
}

TEST(FinishTimeTest, SharesFollowSpeeds) {
  EXPECT_EQ(equal_finish_rows({cost(0, 1), cost(0, 1)}, 64), (Rows{32, 32}));
  EXPECT_EQ(equal_finish_rows({cost(0, 1), cost(0, 3)}, 64), (Rows{48, 16}));
  EXPECT_EQ(equal_finish_rows({cost(0, 1), cost(0, 2), cost(0, 4)}, 70), (Rows{40, 20, 10}));
  EXPECT_EQ(equal_finish_rows({cost(0, 1)}, 5), (Rows{5}));
}

TEST(FinishTimeTest, AFixedCostIsWorthRows) {
  // 10 + n = 2 (30 - n)
  const Rows rows = equal_finish_rows({cost(10, 1), cost(0, 2)}, 30);
  EXPECT_EQ(rows, (Rows{17, 13}));
  EXPECT_EQ(finish_seconds({cost(10, 1), cost(0, 2)}, rows), 27);
}

TEST(FinishTimeTest, ARankWhoseFixedCostIsTooLargeGetsNothing) {
  const std::vector<RankCost> ranks = {cost(0, 1), cost(100, 0.001)};
  EXPECT_EQ(equal_finish_rows(ranks, 50), (Rows{50, 0}));
  EXPECT_EQ(finish_seconds(ranks, {50, 0}), 50);  // who has no rows takes no time
}

TEST(FinishTimeTest, MemoryLimitsARank) {
  EXPECT_EQ(equal_finish_rows({cost(0, 1, 10), cost(0, 1)}, 64), (Rows{10, 54}));
  EXPECT_EQ(equal_finish_rows({cost(0, 1, 10), cost(0, 4, 54)}, 64), (Rows{10, 54}));
  EXPECT_EQ(equal_finish_rows({cost(0, 1, 10), cost(0, 4, 53)}, 64), Rows{});
  EXPECT_EQ(equal_finish_rows({cost(0, 1, 0), cost(0, 1)}, 3), (Rows{0, 3}));
}

TEST(FinishTimeTest, WhoTakesNoPartGetsNothing) {
  std::vector<RankCost> ranks = {cost(0, 1), cost(0, 1)};
  ranks[0].takes_part = false;
  EXPECT_EQ(equal_finish_rows(ranks, 8), (Rows{0, 8}));
}

TEST(FinishTimeTest, AMultipleWhereItCostsLittle) {
  const auto gpu = [](double per_row) { return cost(0, per_row, 1 << 20, 32); };
  EXPECT_EQ(equal_finish_rows({gpu(1), gpu(1.001)}, 4096 + 64), (Rows{2080, 2080}));
  // A third of 1,000 rows: neither 32 nor 16 is within 1 %, but 8.
  const Rows rows = equal_finish_rows({gpu(1), gpu(1), gpu(1)}, 1000);
  EXPECT_EQ(rows, (Rows{336, 336, 328}));
  // Where rows are few each one counts.
  EXPECT_EQ(equal_finish_rows({gpu(1), gpu(1), gpu(1)}, 9), (Rows{3, 3, 3}));
}

TEST(FinishTimeTest, RowsAlwaysSumToTheBatchWithinTheLimits) {
  for (const int64_t batch : {1, 2, 7, 64, 1031}) {
    for (const double fixed : {0.0, 0.3, 50.0}) {
      for (const int64_t multiple : {1, 8, 32}) {
        const std::vector<RankCost> ranks = {cost(fixed, 0.7, batch, multiple),
                                             cost(0, 1.3, batch / 2 + 1), cost(1, 0, batch)};
        const Rows rows = equal_finish_rows(ranks, batch);
        ASSERT_EQ(rows.size(), 3u);
        EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), int64_t{0}), batch);
        for (size_t i = 0; i < 3; ++i) {
          EXPECT_GE(rows[i], 0);
          EXPECT_LE(rows[i], ranks[i].limits.max_rows);
        }
      }
    }
  }
}

}  // namespace
}  // namespace netcl
