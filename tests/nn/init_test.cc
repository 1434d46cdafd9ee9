// Initial values: the same bits for the same seed, the right moments, streams that differ.
#include "core/nn/init.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/nn/arena.h"

namespace netcl {
namespace {

Slot make_slot(uint32_t init, double a = 0, double b = 0, int64_t n = 40001) {
  return {"layers.0.weight", {DType::kF32, {n}}, init, a, b};
}

struct Moments {
  double mean = 0, deviation = 0;
};

Moments moments(const std::vector<float>& x) {
  Moments m;
  for (const float v : x) m.mean += static_cast<double>(v) / static_cast<double>(x.size());
  for (const float v : x) m.deviation += std::pow(static_cast<double>(v) - m.mean, 2);
  m.deviation = std::sqrt(m.deviation / static_cast<double>(x.size()));
  return m;
}

TEST(InitTest, Constants) {
  EXPECT_EQ(initial_values(make_slot(NETCL_INIT_ZEROS, 0, 0, 3), 1, 0), (std::vector<float>(3, 0)));
  EXPECT_EQ(initial_values(make_slot(NETCL_INIT_ONES, 0, 0, 3), 1, 0), (std::vector<float>(3, 1)));
  EXPECT_EQ(initial_values(make_slot(NETCL_INIT_CONSTANT, 2.5, 0, 3), 1, 0),
            (std::vector<float>(3, 2.5f)));
  EXPECT_TRUE(initial_values(make_slot(NETCL_INIT_NORMAL, 0, 1, 0), 1, 0).empty());
  EXPECT_THROW(initial_values(make_slot(99), 1, 0), Error);
}

TEST(InitTest, TheSeedDecides) {
  for (const uint32_t init : {NETCL_INIT_UNIFORM, NETCL_INIT_NORMAL}) {
    const Slot slot = make_slot(init, -1, 1, 1031);
    const std::vector<float> x = initial_values(slot, 42, 3);
    EXPECT_EQ(initial_values(slot, 42, 3), x);
    EXPECT_NE(initial_values(slot, 43, 3), x);
    EXPECT_NE(initial_values(slot, 42 + (uint64_t{1} << 32), 3), x);
    EXPECT_NE(initial_values(slot, 42, 4), x);  // another slot
    // A longer slot begins with the same values: they depend on the position alone.
    const std::vector<float> longer = initial_values(make_slot(init, -1, 1, 2000), 42, 3);
    EXPECT_TRUE(std::equal(x.begin(), x.end() - 1, longer.begin()));
  }
}

TEST(InitTest, UniformFillsItsRange) {
  const std::vector<float> x = initial_values(make_slot(NETCL_INIT_UNIFORM, -3, 5), 7, 0);
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  EXPECT_GE(*low, -3.0f);
  EXPECT_LE(*high, 5.0f);
  EXPECT_LT(*low, -2.99f);
  EXPECT_GT(*high, 4.99f);
  const Moments m = moments(x);  // deviation 8 / sqrt(12) = 2.309; 4 deviations of the mean: 0.046
  EXPECT_NEAR(m.mean, 1, 0.046);
  EXPECT_NEAR(m.deviation, 2.309, 0.03);
}

TEST(InitTest, NormalHasItsMoments) {
  const std::vector<float> x = initial_values(make_slot(NETCL_INIT_NORMAL, 1, 2), 7, 0);
  const Moments m = moments(x);
  EXPECT_NEAR(m.mean, 1, 0.04);  // 4 * 2 / sqrt(40001)
  EXPECT_NEAR(m.deviation, 2, 0.03);
  const auto beyond =
      std::count_if(x.begin(), x.end(), [](float v) { return std::fabs(v - 1) > 4; });
  EXPECT_NEAR(static_cast<double>(beyond) / static_cast<double>(x.size()), 0.0455, 0.0042);
}

TEST(InitTest, NeighbouringSlotsAreNotCorrelated) {
  const std::vector<float> x = initial_values(make_slot(NETCL_INIT_NORMAL, 0, 1), 7, 0);
  const std::vector<float> y = initial_values(make_slot(NETCL_INIT_NORMAL, 0, 1), 7, 1);
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i)
    sum += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  EXPECT_NEAR(sum / static_cast<double>(x.size()), 0, 0.02);  // 4 / sqrt(40001)
}

TEST(ArenaTest, TensorsBeginAtTheAlignment) {
  ArenaLayout arena;
  arena.add("a", {DType::kF32, {3, 5}});
  arena.add("b", {DType::kF32, {128}});
  arena.add("empty", {DType::kF32, {0}});
  arena.add("c", {DType::kF32, {129}});
  EXPECT_EQ(arena.find("a").offset, 0);
  EXPECT_EQ(arena.find("b").offset, 128);
  EXPECT_EQ(arena.find("c").offset, 256);
  EXPECT_EQ(arena.num_floats(), 512);
  EXPECT_EQ(arena.entries().size(), 4u);
  EXPECT_THROW(arena.find("d"), Error);
  EXPECT_THROW(arena.add("a", {DType::kF32, {1}}), Error);
  EXPECT_THROW(arena.add("i", {DType::kI32, {1}}), Error);
}

TEST(InitTest, TruncatedNormalStaysWithinTwoDeviations) {
  const std::vector<float> x = initial_values(make_slot(NETCL_INIT_TRUNC_NORMAL, 1, 0.5), 7, 0);
  for (const float v : x) ASSERT_LE(std::fabs(v - 1.0f), 1.0f);
  const Moments m = moments(x);
  EXPECT_NEAR(m.mean, 1, 0.01);
  EXPECT_NEAR(m.deviation, 0.5 * 0.8796, 0.01);  // of a normal cut at two deviations
}

TEST(InitTest, OrthogonalRowsOrColumns) {
  for (const Shape& shape : {Shape{5, 9}, Shape{9, 5}, Shape{6, 2, 3}, Shape{1, 4}}) {
    Slot slot = make_slot(NETCL_INIT_ORTHOGONAL, 2);
    slot.desc.shape = shape;
    const std::vector<float> x = initial_values(slot, 3, 0);
    const auto rows = static_cast<size_t>(shape[0]), columns = x.size() / rows;
    const bool wide = rows <= columns;
    const size_t vectors = std::min(rows, columns), length = std::max(rows, columns);
    const auto at = [&](size_t v, size_t i) {
      return static_cast<double>(wide ? x[v * columns + i] : x[i * columns + v]);
    };
    for (size_t v = 0; v < vectors; ++v) {
      for (size_t w = 0; w <= v; ++w) {
        double dot = 0;
        for (size_t i = 0; i < length; ++i) dot += at(v, i) * at(w, i);
        EXPECT_NEAR(dot, v == w ? 4 : 0, 1e-5) << shape.str();
      }
    }
  }
  EXPECT_THROW(initial_values(make_slot(NETCL_INIT_ORTHOGONAL, 1), 1, 0), Error);
}

}  // namespace
}  // namespace netcl
