// What OpCheck finds in recipes that are wrong on purpose, and that it finds nothing in right ones.
#include "core/verify/op_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/ops/device_fixture.h"
#include "tests/verify/written_recipe.h"

namespace netcl {
namespace testing {
namespace {

constexpr uint64_t kSeed = 7;

// relu of 37 numbers; `body` is what each work-item does, `items` how many there are.
Recipe relu(const std::string& body, uint64_t items = 37) {
  return written_recipe("__global float* x, __global float* y", body, {in_arg(0), out_arg(0)},
                        items);
}

OpVerdict judge(const Recipe& recipe) {
  OpCase c;
  c.in = {{DType::kF32, Shape{37}}};
  c.low = -1;
  c.high = 1;
  return OpCheck(find_op("relu"), c, kSeed).judge(*shared_device().queue(), recipe);
}

bool has(const OpVerdict& verdict, OpFinding::Kind kind) {
  for (const OpFinding& finding : verdict.findings)
    if (finding.kind == kind) return true;
  return false;
}

TEST(OpCheck, ARightKernelIsRight) {
  const OpVerdict verdict = judge(relu("y[i] = x[i] > 0 ? x[i] : 0;"));
  EXPECT_TRUE(verdict.right()) << verdict.text();
}

TEST(OpCheck, AWrongElementIsNamed) {
  const OpVerdict verdict = judge(relu("y[i] = i == 17 ? 3 : x[i] > 0 ? x[i] : 0;"));
  EXPECT_TRUE(has(verdict, OpFinding::Kind::kResult));
  EXPECT_NE(verdict.text().find("element 17: got 3"), std::string::npos) << verdict.text();
}

TEST(OpCheck, AnElementThatIsNeverWrittenIsPoison) {
  const OpVerdict verdict = judge(relu("y[i] = x[i] > 0 ? x[i] : 0;", 36));
  EXPECT_NE(verdict.text().find("element 36: got "), std::string::npos) << verdict.text();
}

TEST(OpCheck, AWritePastTheEndIsFound) {
  const OpVerdict verdict = judge(relu("y[i] = i < 37 && x[i] > 0 ? x[i] : 0;", 38));
  EXPECT_TRUE(has(verdict, OpFinding::Kind::kOutOfBounds));
  EXPECT_NE(verdict.text().find("written beyond output 0"), std::string::npos) << verdict.text();
}

TEST(OpCheck, AWriteBeforeTheBeginningIsFound) {
  const OpVerdict verdict = judge(relu("y[i] = x[i] > 0 ? x[i] : 0; if (i == 0) y[-1] = 0;"));
  EXPECT_TRUE(has(verdict, OpFinding::Kind::kOutOfBounds)) << verdict.text();
}

TEST(OpCheck, AChangedInputIsFound) {
  const OpVerdict verdict = judge(relu("y[i] = x[i] > 0 ? x[i] : 0; if (i == 3) x[i] = 5;"));
  EXPECT_TRUE(has(verdict, OpFinding::Kind::kInputModified));
  EXPECT_NE(verdict.text().find("input 0 was written"), std::string::npos) << verdict.text();
}

TEST(FirstDifference, InfinityAndNoNumberAreNotCloseToAnything) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const TensorDesc desc{DType::kF32, Shape{1}};
  const HostTensor scale{desc, {1.0}};
  const auto differ = [&](double got, double want) {
    double worst = 0;
    return !first_difference({desc, {got}}, {desc, {want}}, scale, 1e-6, &worst).empty();
  };
  EXPECT_TRUE(differ(0, kInf));
  EXPECT_TRUE(differ(kInf, 0));
  EXPECT_TRUE(differ(NAN, 0));
  EXPECT_TRUE(differ(0, NAN));
  EXPECT_TRUE(differ(kInf, -kInf));
  EXPECT_FALSE(differ(kInf, kInf));
  EXPECT_FALSE(differ(NAN, NAN));
  EXPECT_FALSE(differ(1, 1 + 1e-7));
}

}  // namespace
}  // namespace testing
}  // namespace netcl
