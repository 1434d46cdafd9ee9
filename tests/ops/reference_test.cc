// References at values worked out by hand or stated by definition: the gradient checks cannot see a
// forward rule that is wrong in the same way as its derivative.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/ops/case_inputs.h"
#include "core/ops/host_recorder.h"
#include "core/ops/reduce.h"

namespace netcl {
namespace {

using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;

class ReferenceTest : public testing::Test {
 protected:
  ValueId f32(const Shape& shape, Doubles data) {
    return r.input({{DType::kF32, shape}, std::move(data)});
  }
  ValueId i32(const Shape& shape, Doubles data) {
    return r.input({{DType::kI32, shape}, std::move(data)});
  }
  Doubles run(const std::string& op, const std::vector<ValueId>& in, const Attrs& attrs = {}) {
    return r.value(r.apply(op, in, attrs)[0]).data;
  }
  HostRecorder r;
};

TEST_F(ReferenceTest, UnaryAtKnownPoints) {
  struct Point {
    const char* op;
    double x, y;
  };
  const std::vector<Point> points = {{"neg", 2, -2},
                                     {"abs", -3, 3},
                                     {"sign", -0.5, -1},
                                     {"sign", 0, 0},
                                     {"exp", 1, 2.718281828459045},
                                     {"log", 1, 0},
                                     {"sqrt", 9, 3},
                                     {"rsqrt", 4, 0.5},
                                     {"sin", 1.5707963267948966, 1},
                                     {"cos", 0, 1},
                                     {"tanh", 0.5493061443340549, 0.5},
                                     {"sigmoid", 0, 0.5},
                                     {"relu", -1, 0},
                                     {"relu", 2, 2},
                                     {"leaky_relu", -2, -0.02},
                                     {"elu", -1, -0.6321205588285577},
                                     {"silu", 1, 0.7310585786300049},
                                     {"softplus", 0, 0.6931471805599453},
                                     {"softplus", 800, 800},
                                     {"softplus", -800, 0},
                                     {"hardswish", -4, 0},
                                     {"hardswish", 4, 4},
                                     {"hardswish", 1, 2.0 / 3},
                                     {"gelu", 1, 0.8413447460685429},
                                     {"gelu_tanh", 1, 0.8411919906082768},
                                     {"scale", 5, 5},
                                     {"clamp", 5, 5}};
  for (const Point& p : points) {
    EXPECT_NEAR(run(p.op, {f32({1}, {p.x})})[0], p.y, 1e-12) << p.op << " at " << p.x;
  }
}

TEST_F(ReferenceTest, BinaryAndWhere) {
  const ValueId a = f32({2, 1}, {1, 4}), b = f32({2}, {2, 3});
  EXPECT_EQ(run("add", {a, b}), (Doubles{3, 4, 6, 7}));
  EXPECT_EQ(run("sub", {a, b}), (Doubles{-1, -2, 2, 1}));
  EXPECT_EQ(run("mul", {a, b}), (Doubles{2, 3, 8, 12}));
  EXPECT_EQ(run("div", {a, b}), (Doubles{0.5, 1.0 / 3, 2, 4.0 / 3}));
  EXPECT_EQ(run("pow", {a, b}), (Doubles{1, 1, 16, 64}));
  EXPECT_EQ(run("max", {a, b}), (Doubles{2, 3, 4, 4}));
  EXPECT_EQ(run("min", {a, b}), (Doubles{1, 1, 2, 3}));
  EXPECT_EQ(run("less", {a, b}), (Doubles{1, 1, 0, 0}));
  EXPECT_EQ(run("equal", {a, f32({2}, {1, 4})}), (Doubles{1, 0, 0, 1}));
  EXPECT_EQ(run("where", {r.call("less", {a, b}), a, b}), (Doubles{1, 1, 2, 3}));
  EXPECT_EQ(run("cast", {f32({2}, {-1.75, 2.5})}, {{"dtype", std::string("i32")}}),
            (Doubles{-1, 2}));
}

TEST_F(ReferenceTest, NotANumberIsNotHidden) {
  const ValueId nan = f32({1}, {std::nan("")}), one = f32({1}, {1});
  for (const char* op : {"max", "min"}) {
    EXPECT_TRUE(std::isnan(run(op, {nan, one})[0])) << op;
    EXPECT_TRUE(std::isnan(run(op, {one, nan})[0])) << op;
  }
  for (const char* op : {"relu", "clamp", "abs"}) EXPECT_TRUE(std::isnan(run(op, {nan})[0])) << op;
  const ValueId row = f32({3}, {1, std::nan(""), 2});
  for (const char* op : {"max_reduce", "min_reduce", "sum"})
    EXPECT_TRUE(std::isnan(run(op, {row})[0])) << op;
  EXPECT_EQ(run("argmax", {row})[0], 1);
}

TEST_F(ReferenceTest, Reductions) {
  const ValueId x = f32({2, 3}, {1, 5, 3, 4, 2, 6});
  EXPECT_EQ(run("sum", {x}), Doubles{21});
  EXPECT_EQ(run("sum", {x}, {{"axes", Ints{0}}}), (Doubles{5, 7, 9}));
  EXPECT_EQ(run("mean", {x}, {{"axes", Ints{1}}}), (Doubles{3, 4}));
  EXPECT_EQ(run("max_reduce", {x}, {{"axes", Ints{1}}}), (Doubles{5, 6}));
  EXPECT_EQ(run("min_reduce", {x}, {{"axes", Ints{0}}}), (Doubles{1, 2, 3}));
  EXPECT_EQ(run("var", {x}, {{"axes", Ints{1}}}), (Doubles{4, 4}));
  EXPECT_EQ(run("var", {x}, {{"axes", Ints{1}}, {"correction", int64_t{0}}})[0], 8.0 / 3);
  EXPECT_EQ(run("argmax", {x}), (Doubles{1, 2}));
  EXPECT_EQ(run("argmax", {x}, {{"axis", int64_t{0}}}), (Doubles{1, 0, 1}));
}

TEST_F(ReferenceTest, ReduceOverScatteredAxesEqualsPermutedOne) {
  const ValueId x = r.input(random_tensor({2, 3, 4, 5}, -1, 1, 5));
  for (const char* op : {"sum", "mean", "max_reduce", "min_reduce", "var"}) {
    const Doubles got = r.value(reduce(r, op, x, {0, 2}, false)).data;
    const ValueId moved = r.call("permute", {x}, {{"axes", Ints{1, 3, 0, 2}}});
    const Doubles wanted = run(op, {moved}, {{"axes", Ints{2, 3}}});
    ASSERT_EQ(got.size(), 15u);
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-14) << op;
    EXPECT_EQ(r.desc(reduce(r, op, x, {0, 2}, true)).shape, (Shape{1, 3, 1, 5}));
  }
}

TEST_F(ReferenceTest, MatmulWithTransposesBiasAndActivation) {
  const ValueId a = f32({2, 3}, {1, 2, 3, 4, 5, 6}), at = f32({3, 2}, {1, 4, 2, 5, 3, 6});
  const ValueId b = f32({3, 2}, {1, -1, 0, 2, 1, 0}), bt = f32({2, 3}, {1, 0, 1, -1, 2, 0});
  const Doubles wanted = {4, 3, 10, 6};
  const Attrs ta{{"transpose_a", int64_t{1}}}, tb{{"transpose_b", int64_t{1}}};
  const Attrs both{{"transpose_a", int64_t{1}}, {"transpose_b", int64_t{1}}};
  EXPECT_EQ(run("matmul", {a, b}), wanted);
  EXPECT_EQ(run("matmul", {at, b}, ta), wanted);
  EXPECT_EQ(run("matmul", {a, bt}, tb), wanted);
  EXPECT_EQ(run("matmul", {at, bt}, both), wanted);
  EXPECT_EQ(run("matmul", {a, b, f32({2}, {-5, 1})}, {{"activation", std::string("relu")}}),
            (Doubles{0, 4, 5, 7}));
}

TEST_F(ReferenceTest, SoftmaxAndCrossEntropy) {
  const ValueId x = f32({2, 2}, {0, std::log(3.0), 1000, 1000});
  const Doubles y = run("softmax", {x});
  EXPECT_NEAR(y[0], 0.25, 1e-15);
  EXPECT_NEAR(y[1], 0.75, 1e-15);
  EXPECT_NEAR(y[2], 0.5, 1e-12);
  EXPECT_NEAR(run("log_softmax", {x})[1], std::log(0.75), 1e-15);
  auto out = r.apply("cross_entropy", {x, i32({2}, {0, -100})});
  EXPECT_NEAR(r.value(out[0]).data[0], std::log(4.0), 1e-15);
  EXPECT_EQ(r.value(out[0]).data[1], 0);
  EXPECT_EQ(r.value(out[1]).data, (Doubles{1, 0}));
  out = r.apply("cross_entropy", {x, i32({2}, {0, 2})});  // no such class
  EXPECT_TRUE(std::isnan(r.value(out[0]).data[1]));
}

TEST_F(ReferenceTest, Layout) {
  const ValueId x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run("permute", {x}, {{"axes", Ints{1, 0}}}), (Doubles{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(run("broadcast_to", {f32({2, 1}, {7, 8})}, {{"shape", Shape{2, 2}}}),
            (Doubles{7, 7, 8, 8}));
  EXPECT_EQ(run("reshape", {x}, {{"shape", Shape{6}}}), (Doubles{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(run("full", {}, {{"shape", Shape{2}}, {"value", 3.5}}), (Doubles{3.5, 3.5}));
}

TEST_F(ReferenceTest, HostRecorderRefusesWhatDoesNotFit) {
  EXPECT_THROW(f32({2}, {1}), Error);
  EXPECT_THROW(f32({-1}, {1}), Error);
  EXPECT_THROW(r.value(12345), Error);
}

TEST(CaseInputsTest, RepeatAndKeepTheirRanges) {
  OpCase c;
  c.in = {{DType::kF32, {1000}}, {DType::kI32, {1000}}, {DType::kF32, {2}}};
  c.low = 2;
  c.high = 3;
  c.int_high = {0, 4};
  c.fixed = {{2, {0.1, -5}}};
  const std::vector<HostTensor> a = case_inputs(c, 9), b = case_inputs(c, 9),
                                other = case_inputs(c, 10);
  EXPECT_EQ(a[0].data, b[0].data);
  EXPECT_NE(a[0].data, other[0].data);
  for (const double x : a[0].data) {
    ASSERT_TRUE(x >= 2 && x <= 3);  // 3 itself by rounding to float
    ASSERT_EQ(x, static_cast<double>(static_cast<float>(x)));
  }
  std::vector<int> seen(4);
  for (const double x : a[1].data) ++seen.at(static_cast<size_t>(x));
  for (const int n : seen) EXPECT_GT(n, 150);
  EXPECT_EQ(a[2].data[0], static_cast<double>(0.1f));
  EXPECT_EQ(a[2].data[1], -5);
}

}  // namespace
}  // namespace netcl
