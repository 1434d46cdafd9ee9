// Shapes that nobody listed, and what VariantCheck finds on them.
#include "core/verify/variant_check.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/runtime/tuned_record.h"
#include "core/verify/sample_cases.h"
#include "tests/ops/device_fixture.h"
#include "tests/verify/written_recipe.h"

namespace netcl {
namespace testing {
namespace {

std::vector<TensorDesc> floats(const std::vector<Shape>& shapes) {
  std::vector<TensorDesc> out;
  for (const Shape& shape : shapes) out.push_back({DType::kF32, shape});
  return out;
}

std::string text(const std::optional<std::vector<TensorDesc>>& in) {
  return in ? tuned_question("", *in, {}).shapes() : "none";
}

TEST(SampleCases, SizesThatMustAgreeStillDo) {
  const OpRow& row = find_op("matmul");
  const Attrs attrs = complete_attrs(row, {});
  const auto in = floats({{512, 256}, {256, 1000}});
  EXPECT_EQ(text(odd_shapes(row, in, attrs)), "79x71 71x79");
  EXPECT_EQ(text(edge_shapes(row, in, attrs)), "1x1 1x1");
  EXPECT_EQ(text(odd_shapes(row, floats({{60, 3}, {3, 8}}), attrs)), "53x3 3x7");
}

TEST(SampleCases, WhatTheOpDoesNotTakeIsLeftOut) {
  const OpRow& row = find_op("reshape");
  const Attrs attrs = complete_attrs(row, {{"shape", Shape{6, 4}}});
  EXPECT_EQ(text(odd_shapes(row, floats({{24}}), attrs)), "none");
  EXPECT_EQ(text(edge_shapes(find_op("relu"), floats({{1, 1}}), {})), "none");
}

TEST(SampleCases, EveryRowWithRandomInputsHasOne) {
  size_t checked = 0;
  for (const OpRow& row : op_table()) {
    for (const OpCase& c : row.cases) {
      if (!c.fixed.empty() || !row.reference) continue;
      const Attrs attrs = complete_attrs(row, c.attrs);
      ASSERT_TRUE(sample_case(row, c.in, attrs)) << row.name;
      const auto odd = odd_shapes(row, c.in, attrs), edge = edge_shapes(row, c.in, attrs);
      for (const auto& in : {odd, edge}) {
        if (!in) continue;
        const auto sample = sample_case(row, *in, attrs);
        ASSERT_TRUE(sample) << row.name;
        EXPECT_NO_THROW(OpCheck(row, *sample, 7)) << row.name << " " << text(in);
        ++checked;
      }
      if (odd && edge) break;  // of most rows a case of one element comes first
    }
  }
  EXPECT_GT(checked, 150u);
}

// relu with a fault that shows where `fault` holds; `where` may use i and n.
Recipe relu(size_t n, const std::string& where) {
  return written_recipe("__global float* x, __global float* y, const int n",
                        "  y[i] = x[i] > 0 ? x[i] : 0;\n  if (" + where + ") y[i] = 7;",
                        {in_arg(0), out_arg(0), i32_arg(static_cast<int64_t>(n))}, n);
}

class VariantCheckTest : public ::testing::Test {
 protected:
  // What is found in kernels with that fault.
  std::string wrong(int64_t rows, const std::string& where) {
    const std::vector<TensorDesc> in = floats({{rows, 64}}), out = in;
    const auto planner = [&](const std::string& fault) {
      return [fault](const KernelQuestion& q, std::string*) {
        return std::make_shared<Recipe>(
            relu(static_cast<size_t>(q.in[0].shape.num_elements()), fault));
      };
    };
    const VariantCheck check(shared_device().queue(), {row_, in, out, attrs_}, planner("0"));
    text_ = check.text();
    return check.wrong(planner(where));
  }
  const OpRow& row_ = find_op("relu");
  const Attrs attrs_;
  std::string text_;
};

TEST_F(VariantCheckTest, ARightOneIsRight) {
  EXPECT_EQ(wrong(32, "0"), "");
  EXPECT_EQ(text_, "reference: 32x64; reference: 29x61; reference: 1x1");
}

TEST_F(VariantCheckTest, EachShapeIsLookedAt) {
  EXPECT_EQ(wrong(32, "i == 2047").rfind("32x64: output 0: element 2047", 0), 0u);
  EXPECT_EQ(wrong(32, "n % 2 == 1 && i == 500").rfind("29x61: ", 0), 0u);
  EXPECT_EQ(wrong(32, "n == 1").rfind("1x1: ", 0), 0u);
}

// A product of [m,k] and [k,n]; element `wrong` is 7.
Recipe product(int64_t m, int64_t k, int64_t n, int64_t wrong) {
  return written_recipe(
      "__global float* a, __global float* b, __global float* y, const int K, const int N, "
      "const int wrong",
      "  float sum = 0;\n"
      "  for (int k = 0; k < K; ++k) sum += a[i / N * K + k] * b[k * N + i % N];\n"
      "  y[i] = i == wrong ? 7 : sum;",
      {in_arg(0), in_arg(1), out_arg(0), i32_arg(k), i32_arg(n), i32_arg(wrong)},
      static_cast<uint64_t>(m * n));
}

TEST(VariantCheckOf, WhatIsTooLargeForTheReferenceIsComparedWithOtherKernels) {
  const OpRow& row = find_op("matmul");
  const Attrs attrs = complete_attrs(row, {});
  const auto in = floats({{340, 300}, {300, 340}}), out = floats({{340, 340}});
  const auto planner = [](int64_t wrong) {
    return [wrong](const KernelQuestion& q, std::string*) {
      const Shape &a = q.in[0].shape, &b = q.in[1].shape;
      return std::make_shared<Recipe>(product(a[0], a[1], b[1], wrong));
    };
  };
  const VariantCheck check(shared_device().queue(), {row, in, out, attrs}, planner(-1));
  EXPECT_EQ(check.text().rfind("test/written: 340x300 300x340; reference: ", 0), 0u);
  EXPECT_EQ(check.wrong(planner(-1)), "");
  EXPECT_EQ(check.wrong(planner(100000)).rfind("340x300 300x340: output 0: element 100000", 0), 0u);
}

TEST(VariantCheckOf, InputsThatCannotBeRandomAreRefused) {
  const OpRow& row = find_op("adam_step");
  const std::vector<TensorDesc> in = floats({{4}}), out;
  EXPECT_THROW(VariantCheck(shared_device().queue(), {row, in, out, {}}, nullptr), Error);
}

}  // namespace
}  // namespace testing
}  // namespace netcl
