// Philox against its published vectors, dropout's keep rate, and its independence of the split.
#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/host_recorder.h"
#include "core/ops/reference/philox.h"

namespace netcl {
namespace {

// Source: the known-answer file of the authors' library Random123.
TEST(PhiloxTest, KnownAnswers) {
  const PhiloxCounter zeros = philox4x32({0, 0, 0, 0}, {0, 0});
  EXPECT_EQ(zeros, (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t all = 0xffffffff;
  const PhiloxCounter ones = philox4x32({all, all, all, all}, {all, all});
  EXPECT_EQ(ones, (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(PhiloxTest, UniformLiesInTheHalfOpenUnitInterval) {
  EXPECT_EQ(philox_uniform(0), 0);
  EXPECT_LT(philox_uniform(0xffffffff), 1);
}

std::vector<double> dropout_of_ones(const Shape& shape, double first_row, double p, int64_t stream,
                                    double step = 3) {
  HostRecorder r;
  const auto n = static_cast<size_t>(shape.num_elements());
  const ValueId x = r.input({{DType::kF32, shape}, std::vector<double>(n, 1.0)});
  const ValueId state = r.input({{DType::kI32, {8}}, {42, 7, step, first_row, 0, 0, 0, 0}});
  return r.value(r.call("dropout", {x, state}, {{"p", p}, {"stream", stream}})).data;
}

TEST(DropoutTest, KeepRateAndScale) {
  for (const double p : {0.1, 0.5, 0.9}) {
    const std::vector<double> y = dropout_of_ones({400, 101}, 0, p, 0);
    double kept = 0;
    for (const double v : y) {
      ASSERT_TRUE(v == 0 || v == 1 / (1 - p)) << v;
      kept += v != 0;
    }
    const double n = static_cast<double>(y.size());
    // Four standard deviations of a binomial share.
    EXPECT_NEAR(kept / n, 1 - p, 4 * std::sqrt(p * (1 - p) / n));
  }
}

TEST(DropoutTest, TheSplitOfTheBatchDoesNotMatter) {
  for (const int64_t row : {1, 3, 4, 7}) {
    const std::vector<double> whole = dropout_of_ones({10, row}, 0, 0.5, 2);
    std::vector<double> parts = dropout_of_ones({5, row}, 0, 0.5, 2);
    const std::vector<double> second = dropout_of_ones({5, row}, 5, 0.5, 2);
    parts.insert(parts.end(), second.begin(), second.end());
    EXPECT_EQ(whole, parts) << "row " << row;
  }
}

TEST(DropoutTest, StreamsAndStepsDiffer) {
  const std::vector<double> a = dropout_of_ones({10, 10}, 0, 0.5, 2);
  EXPECT_NE(a, dropout_of_ones({10, 10}, 0, 0.5, 3));
  EXPECT_NE(a, dropout_of_ones({10, 10}, 0, 0.5, 2, 4));
}

}  // namespace
}  // namespace netcl
