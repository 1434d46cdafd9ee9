// The facts that kernels are given (kernels/README.md).
#include <gtest/gtest.h>

#include "core/ops/op.h"

namespace netcl {
namespace {

Attrs facts_of(const std::string& op, const std::vector<TensorDesc>& in, const Attrs& given = {}) {
  const OpRow& row = find_op(op);
  const Attrs attrs = complete_attrs(row, given);
  Attrs facts;
  row.facts({row, in, attrs}, facts);
  return facts;
}

TensorDesc f32(const Shape& shape) { return {DType::kF32, shape}; }
using Ints = std::vector<int64_t>;

TEST(FactsTest, EqualShapesAreDense) {
  const Attrs f = facts_of("add", {f32({3, 5}), f32({3, 5})});
  EXPECT_EQ(f.text("mode"), "dense");
  EXPECT_EQ(f.text("ctype"), "float");
  EXPECT_EQ(f.text("expr"), "(x0 + x1)");
  EXPECT_EQ(f.integer("n"), 15);
  EXPECT_EQ(f.integer("inner"), 15);
  EXPECT_EQ(f.integer("step1"), 1);
  EXPECT_EQ(facts_of("add", {f32({1, 5}), f32({5})}).text("mode"), "dense");  // ones do not matter
  EXPECT_EQ(facts_of("add", {f32({1}), f32({})}).text("mode"), "dense");
}

TEST(FactsTest, IntegersAreHeldAsInt) {
  EXPECT_EQ(facts_of("add", {{DType::kI32, {3}}, {DType::kU8, {3}}}).text("ctype"), "int");
  EXPECT_EQ(facts_of("add", {{DType::kI32, {3}}, f32({3})}).text("ctype"), "float");
}

TEST(FactsTest, BroadcastRowsCollapseToTwoDimensions) {
  const Attrs f = facts_of("add", {f32({2, 3, 4, 5}), f32({4, 5})});
  EXPECT_EQ(f.text("mode"), "strided");
  EXPECT_EQ(f.integers("dims"), (Ints{1, 1, 1, 1, 1, 1, 6, 20}));
  EXPECT_EQ(f.integers("strides0"), (Ints{0, 0, 0, 0, 0, 0, 20, 1}));
  EXPECT_EQ(f.integers("strides1"), (Ints{0, 0, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(f.integers("strides2"), (Ints{0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(FactsTest, ScalarIsOneDimensionOfStrideZero) {
  const Attrs f = facts_of("mul", {f32({}), f32({2, 3})});
  EXPECT_EQ(f.text("mode"), "strided");
  EXPECT_EQ(f.integers("dims"), (Ints{1, 1, 1, 1, 1, 1, 1, 6}));
  EXPECT_EQ(f.integers("strides0"), (Ints{0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(f.integers("strides1"), (Ints{0, 0, 0, 0, 0, 0, 0, 1}));
}

TEST(FactsTest, OuterProductStaysTwoDimensional) {
  const Attrs f = facts_of("mul", {f32({5, 1}), f32({1, 3})});
  EXPECT_EQ(f.integers("dims"), (Ints{1, 1, 1, 1, 1, 1, 5, 3}));
  EXPECT_EQ(f.integers("strides0"), (Ints{0, 0, 0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(f.integers("strides1"), (Ints{0, 0, 0, 0, 0, 0, 0, 1}));
}

TEST(FactsTest, PermuteGivesTheInputsStrides) {
  const Attrs f = facts_of("permute", {f32({2, 3, 5})}, {{"axes", Ints{2, 0, 1}}});
  EXPECT_EQ(f.integers("dims"), (Ints{1, 1, 1, 1, 1, 1, 5, 6}));  // 2 and 3 stay neighbours
  EXPECT_EQ(f.integers("strides0"), (Ints{0, 0, 0, 0, 0, 0, 1, 5}));
  EXPECT_EQ(facts_of("permute", {f32({2, 3})}, {{"axes", Ints{0, 1}}}).text("mode"), "dense");
}

TEST(FactsTest, ParametersBecomeP0AndP1) {
  const Attrs f = facts_of("scale", {f32({3})}, {{"factor", 2.0}, {"offset", -1.0}});
  EXPECT_EQ(f.number("p0"), 2.0);
  EXPECT_EQ(f.number("p1"), -1.0);
}

TEST(FactsTest, StructuredOps) {
  Attrs f = facts_of("sum", {f32({2, 3, 5})}, {{"axes", Ints{1}}});
  EXPECT_EQ(f.integer("outer"), 2);
  EXPECT_EQ(f.integer("reduce"), 3);
  EXPECT_EQ(f.integer("inner"), 5);
  f = facts_of("matmul", {f32({7, 4}), f32({9, 7}), f32({9})},
               {{"transpose_a", int64_t{1}}, {"transpose_b", int64_t{1}}});
  EXPECT_EQ(f.integer("M"), 4);
  EXPECT_EQ(f.integer("N"), 9);
  EXPECT_EQ(f.integer("K"), 7);
  EXPECT_EQ(f.integer("has_bias"), 1);
  f = facts_of("dropout", {f32({4, 3, 5}), {DType::kI32, {8}}});
  EXPECT_EQ(f.integer("n"), 60);
  EXPECT_EQ(f.integer("row"), 15);
  f = facts_of("cross_entropy", {f32({4, 3}), {DType::kI32, {4}}});
  EXPECT_EQ(f.integer("N"), 4);
  EXPECT_EQ(f.integer("C"), 3);
}

TEST(FactsTest, WindowsOfConvolutionsAndPools) {
  const Attrs conv =
      facts_of("conv2d", {f32({2, 3, 9, 8}), f32({4, 3, 3, 2})},
               {{"stride", Ints{2, 1}}, {"padding", Ints{1, 0}}, {"dilation", Ints{1, 2}}});
  EXPECT_EQ(conv.integers("window8"), (Ints{3, 2, 2, 1, 1, 0, 1, 2}));
  EXPECT_EQ(conv.integer("PH"), 1);
  EXPECT_EQ(conv.integer("PW"), 0);
  const Attrs pool =
      facts_of("max_pool2d", {f32({2, 3, 9, 8})},
               {{"kernel", Ints{3, 2}}, {"stride", Ints{2, 1}}, {"padding", Ints{1, 0}}});
  EXPECT_EQ(pool.integer("KH"), 3);
  EXPECT_EQ(pool.integer("KW"), 2);
  EXPECT_EQ(pool.integer("SH"), 2);
  EXPECT_EQ(pool.integer("SW"), 1);
  EXPECT_EQ(pool.integer("PH"), 1);
  EXPECT_EQ(pool.integer("PW"), 0);
  const Attrs adaptive =
      facts_of("adaptive_max_pool2d", {f32({2, 3, 9, 8})}, {{"output", Ints{2, 2}}});
  EXPECT_FALSE(adaptive.has("KH"));
}

}  // namespace
}  // namespace netcl
