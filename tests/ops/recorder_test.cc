// Shape rules with a symbolic batch, completion of attributes, and the words of refusals. A
// recorder that runs nothing stands for the traced graph.
#include "core/ops/recorder.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/ops/op.h"
#include "core/ops/reduce.h"

namespace netcl {
namespace {

class TraceRecorder : public Recorder {
 public:
  ValueId value(const Shape& shape, DType dtype = DType::kF32) { return add_value({dtype, shape}); }

 protected:
  void recorded(const Node&) override {}
};

std::vector<int64_t> ints(std::initializer_list<int64_t> v) { return v; }

class RecorderTest : public testing::Test {
 protected:
  Shape shape(const std::string& op, const std::vector<ValueId>& in, const Attrs& attrs = {}) {
    return r.desc(r.apply(op, in, attrs)[0]).shape;
  }
  std::string error(const std::string& op, const std::vector<ValueId>& in,
                    const Attrs& attrs = {}) {
    try {
      r.apply(op, in, attrs);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kUsage) << e.message();
      return e.message();
    }
    return "no error";
  }
  TraceRecorder r;
};

TEST_F(RecorderTest, SymbolicBatchThroughShapeRules) {
  const ValueId x = r.value({-1, 64}), w = r.value({64, 10}), bias = r.value({10});
  EXPECT_EQ(shape("matmul", {x, w, bias}), (Shape{-1, 10}));
  EXPECT_EQ(shape("matmul", {x, r.value({-1, 10})}, {{"transpose_a", int64_t{1}}}),
            (Shape{64, 10}));
  EXPECT_EQ(shape("add", {x, r.value({64})}), (Shape{-1, 64}));
  EXPECT_EQ(shape("add", {x, r.value({1, 64})}), (Shape{-1, 64}));
  EXPECT_EQ(shape("sum", {x}, {{"axes", ints({0})}}), (Shape{64}));
  EXPECT_EQ(shape("mean", {x}, {{"axes", ints({1})}, {"keep", int64_t{1}}}), (Shape{-1, 1}));
  EXPECT_EQ(shape("sum", {x}), Shape{});
  EXPECT_EQ(shape("argmax", {x}), (Shape{-1}));
  EXPECT_EQ(shape("softmax", {x}), (Shape{-1, 64}));
  EXPECT_EQ(shape("cross_entropy", {x, r.value({-1}, DType::kI32)}), (Shape{-1}));
  EXPECT_EQ(shape("dropout", {x, r.value({8}, DType::kI32)}), (Shape{-1, 64}));
  EXPECT_EQ(shape("broadcast_to", {r.value({1, 64})}, {{"shape", Shape{-1, 64}}}), (Shape{-1, 64}));
  EXPECT_EQ(shape("permute", {r.value({-1, 3, 5})}, {{"axes", ints({2, 0, 1})}}),
            (Shape{5, -1, 3}));
  EXPECT_EQ(shape("full", {}, {{"shape", Shape{-2, 3}}}), (Shape{-2, 3}));
}

TEST_F(RecorderTest, ReshapeMovesTheBatchFactor) {
  const ValueId x = r.value({-1, 8, 4});
  EXPECT_EQ(shape("reshape", {x}, {{"shape", Shape{-8, 4}}}), (Shape{-8, 4}));
  EXPECT_EQ(shape("reshape", {x}, {{"shape", Shape{-1, 32}}}), (Shape{-1, 32}));
  EXPECT_EQ(error("reshape", {x}, {{"shape", Shape{-1, 31}}}),
            "reshape(f32[B,8,4]): shape [B,8,4] does not hold as many elements as [B,31] (in a "
            "shape B is "
            "the batch size, written -1)");
  EXPECT_NE(error("reshape", {x}, {{"shape", Shape{32}}}).find("does not hold"), std::string::npos);
}

TEST_F(RecorderTest, DataTypesOfElementwise) {
  const ValueId f = r.value({3}), i = r.value({3}, DType::kI32), u = r.value({3}, DType::kU8);
  const auto dtype = [this](const std::string& op, const std::vector<ValueId>& in) {
    return r.desc(r.call(op, in)).dtype;
  };
  EXPECT_EQ(dtype("add", {f, i}), DType::kF32);
  EXPECT_EQ(dtype("add", {u, u}), DType::kI32);
  EXPECT_EQ(dtype("less", {f, i}), DType::kBool);
  EXPECT_EQ(dtype("where", {u, f, f}), DType::kF32);
  EXPECT_EQ(dtype("where", {u, i, i}), DType::kI32);
  EXPECT_EQ(error("exp", {i}),
            "exp(i32[3]): needs a float input; cast the integers with cast(dtype=f32)");
  EXPECT_NE(error("where", {i, f, f}).find("the condition must be bool or u8"), std::string::npos);
}

TEST_F(RecorderTest, RefusalsNameOpAndShapes) {
  const ValueId a = r.value({4, 3}), b = r.value({5, 2}), x = r.value({-1, 64});
  EXPECT_EQ(
      error("matmul", {a, b}),
      "matmul(f32[4,3], f32[5,2]): inner dimensions differ: a has [3], b has [5] (transpose_a=0 "
      "transpose_b=0)");
  EXPECT_NE(error("matmul", {x, r.value({64, 10}), r.value({9})}).find("bias must have shape [10]"),
            std::string::npos);
  EXPECT_NE(error("add", {a, b})
                .find("add(f32[4,3], f32[5,2]): inputs: shapes [4,3] and [5,2] do not "
                      "broadcast"),
            std::string::npos);
  EXPECT_EQ(error("exp", {a, b}), "exp(f32[4,3], f32[5,2]): takes 1 inputs, was given 2");
  EXPECT_EQ(error("matmul", {a}), "matmul(f32[4,3]): takes 2 to 3 inputs, was given 1");
  EXPECT_EQ(error("sum", {a}, {{"axes", ints({2})}}),
            "sum(f32[4,3]): axis 2 is out of range for a tensor of 2 dimensions");
  EXPECT_NE(error("sum", {a}, {{"axes", ints({0, -2})}}).find("axis 0 is named twice"),
            std::string::npos);
  EXPECT_NE(error("sum", {r.value({2, 3, 4})}, {{"axes", ints({0, 2})}}).find("not neighbours"),
            std::string::npos);
  EXPECT_NE(error("permute", {a}, {{"axes", ints({0, 0})}}).find("named twice"), std::string::npos);
  EXPECT_NE(
      error("dropout", {a, r.value({8}, DType::kI32)}, {{"p", 1.0}}).find("p must be in [0, 1)"),
      std::string::npos);
  EXPECT_NE(error("cast", {a}, {{"dtype", std::string("f64")}})
                .find("known: f32, f16, bf16, i32, i64, u8, bool"),
            std::string::npos);
  EXPECT_NE(error("exp", {99999}).find("value 99999 is not of this recorder"), std::string::npos);
  EXPECT_NE(error("broadcast_to", {a}, {{"shape", Shape{3}}}).find("does not stretch"),
            std::string::npos);
  EXPECT_NE(error("reshape", {a}).find("attribute \"shape\" is missing"), std::string::npos);
}

TEST_F(RecorderTest, AttributesAreCompletedAndChecked) {
  const ValueId x = r.value({4, 3});
  r.apply("clamp", {x}, {{"max", int64_t{2}}});
  const Attrs& attrs = r.nodes().back().attrs;
  ASSERT_EQ(attrs.items().size(), 2u);
  EXPECT_EQ(attrs.items()[0].first, "min");
  EXPECT_TRUE(std::holds_alternative<double>(attrs.items()[1].second));  // the kind of the default
  EXPECT_EQ(error("clamp", {x}, {{"maxx", 1.0}}),
            "clamp(f32[4,3]): unknown attribute \"maxx\"; did you mean \"max\"?");
  EXPECT_NE(error("exp", {x}, {{"p", 1.0}}).find("this op takes none"), std::string::npos);
  EXPECT_NE(error("sum", {x}, {{"axes", 1.0}}).find("of the wrong kind; its default is axes=[]"),
            std::string::npos);
  EXPECT_EQ(shape("reshape", {x}, {{"shape", ints({12})}}),
            (Shape{12}));  // a list serves as a shape
}

TEST_F(RecorderTest, ARefusalRecordsNothing) {
  const ValueId x = r.value({4, 3});
  const size_t values = r.num_values(), nodes = r.nodes().size();
  error("matmul", {x, x});
  EXPECT_EQ(r.num_values(), values);
  EXPECT_EQ(r.nodes().size(), nodes);
}

TEST_F(RecorderTest, ReduceComposesGroups) {
  const ValueId x = r.value({-1, 3, 4, 5});
  EXPECT_EQ(r.desc(reduce(r, "sum", x, {0, 2, 3}, false)).shape, Shape{3});
  EXPECT_EQ(r.desc(reduce(r, "mean", x, {-1, 1}, true)).shape, (Shape{-1, 1, 4, 1}));
  EXPECT_EQ(r.desc(reduce(r, "var", x, {0, 2}, true)).shape, (Shape{1, 3, 1, 5}));
  const size_t nodes = r.nodes().size();
  reduce(r, "sum", x, {1, 2}, false);
  EXPECT_EQ(r.nodes().size(), nodes + 1);  // neighbours need one op
}

}  // namespace
}  // namespace netcl
