// What a rank's rows cost, from measured steps.
#include "core/distributed/cost_fit.h"

#include <gtest/gtest.h>

namespace netcl {
namespace {

TEST(CostFitTest, LowerMedian) {
  EXPECT_EQ(lower_median({}), 0);
  EXPECT_EQ(lower_median({3}), 3);
  EXPECT_EQ(lower_median({9, 1}), 1);
  EXPECT_EQ(lower_median({9, 1, 2}), 2);
}

TEST(CostFitTest, OneNumberOfRowsIsAllSlope) {
  CostFit fit;
  EXPECT_FALSE(fit.measured());
  for (int i = 0; i < 3; ++i) fit.add(10, 0.02);
  fit.refit();
  EXPECT_TRUE(fit.measured());
  EXPECT_EQ(fit.line().fixed, 0);
  EXPECT_NEAR(fit.line().per_row, 0.002, 1e-12);
  EXPECT_NEAR(fit.line().at(5), 0.01, 1e-12);
  EXPECT_EQ(fit.line().at(0), 0);
}

TEST(CostFitTest, TwoNumbersOfRowsTellTheFixedPart) {
  CostFit fit;
  for (const int rows : {10, 10, 40, 40}) fit.add(rows, 0.005 + 0.001 * rows);
  fit.refit();
  EXPECT_NEAR(fit.line().fixed, 0.005, 1e-9);
  EXPECT_NEAR(fit.line().per_row, 0.001, 1e-9);
}

TEST(CostFitTest, RowsThatHardlyDifferTellNothing) {
  CostFit fit;
  for (int i = 0; i < 3; ++i) {
    fit.add(100, 0.1);
    fit.add(101, 0.05);
  }
  fit.refit();
  EXPECT_EQ(fit.line().fixed, 0);
  EXPECT_NEAR(fit.line().per_row, 0.05 / 101, 1e-12);
}

TEST(CostFitTest, TheLinePassesThroughTheNewestRowsAndIsNeverNegative) {
  CostFit fit;
  for (const int rows : {10, 10, 20, 20})
    fit.add(rows, 0.00001 * rows * rows);  // steeper and steeper
  fit.refit();
  EXPECT_EQ(fit.line().fixed, 0);
  EXPECT_NEAR(fit.line().at(20), 0.004, 1e-9);
  CostFit falling;
  for (const int rows : {10, 10, 20, 20}) falling.add(rows, 0.1 / rows);
  falling.refit();
  EXPECT_GT(falling.line().per_row, 0);
  EXPECT_NEAR(falling.line().at(20), 0.005, 1e-9);
}

TEST(CostFitTest, OneSlowStepDoesNotCount) {
  CostFit fit;
  for (const double seconds : {0.01, 0.5, 0.01, 0.01}) fit.add(10, seconds);
  fit.refit();
  EXPECT_NEAR(fit.line().at(10), 0.01, 1e-12);
}

TEST(CostFitTest, AChangeOfSpeedScalesTheLineAndForgets) {
  CostFit fit;
  for (const int rows : {10, 10, 40, 40}) fit.add(rows, 0.005 + 0.001 * rows);
  fit.refit();
  fit.rescale(2);
  fit.refit();  // nothing was measured since
  EXPECT_NEAR(fit.line().at(40), 0.09, 1e-9);
  for (int i = 0; i < 2; ++i) fit.add(40, 0.18);  // as large a part of it is fixed as before
  fit.refit();
  EXPECT_NEAR(fit.line().fixed, 0.02, 1e-9);
  EXPECT_NEAR(fit.line().per_row, 0.004, 1e-9);
}

TEST(CostFitTest, NoiseIsThatOfTheMedian) {
  CostFit fit;
  EXPECT_EQ(fit.noise(), 0);
  for (int i = 0; i < 16; ++i) fit.add(10, i % 2 == 0 ? 1.0 : 1.1);
  EXPECT_NEAR(fit.noise(), 0, 0.05);
  CostFit calm;
  for (int i = 0; i < 16; ++i) calm.add(10, 1.0);
  EXPECT_EQ(calm.noise(), 0);
}

}  // namespace
}  // namespace netcl
