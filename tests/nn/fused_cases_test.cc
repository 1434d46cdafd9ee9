// The fused ops of a layer as questions with answers.
#include "core/nn/fused_cases.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "tests/nn/fake_layers.h"

namespace netcl {
namespace testing {
namespace {

std::vector<FusedCase> cases_of(const char* layer, const std::vector<TensorDesc>& in) {
  FakeLayers layers;
  return fused_cases(layers, nlohmann::ordered_json::parse(layer), in);
}

std::vector<HostTensor> ones(const std::vector<TensorDesc>& descs) {
  std::vector<HostTensor> out;
  for (const TensorDesc& d : descs) {
    const std::vector<double> values(static_cast<size_t>(d.shape.num_elements()), 1.0);
    out.push_back({d, values});
  }
  return out;
}

std::vector<HostTensor> reference(const FusedCase& c, const std::vector<HostTensor>& in) {
  std::vector<const HostTensor*> inputs;
  for (const HostTensor& t : in) inputs.push_back(&t);
  std::vector<HostTensor> out;
  c.row.reference({c.row, c.in, c.attrs}, inputs, out);
  return out;
}

TEST(FusedCasesTest, EveryQuestionOnceWithConcreteShapes) {
  const auto cases = cases_of(R"({"type": "gates", "slope": 3})", {{DType::kF32, {5, 7}}});
  ASSERT_EQ(cases.size(), 2u);
  const TensorDesc x = {DType::kF32, {5, 7}}, w = {DType::kF32, {7}};
  EXPECT_EQ(cases[0].row.name, "test.gate");
  EXPECT_EQ(cases[0].in, (std::vector<TensorDesc>{x, w}));
  EXPECT_EQ(cases[0].out, (std::vector<TensorDesc>{x}));
  EXPECT_EQ(cases[0].attrs.number("slope"), 3.0);
  EXPECT_EQ(cases[1].row.name, "test.gate.grad");
  EXPECT_EQ(cases[1].in, (std::vector<TensorDesc>{x, w, x, x}));
  EXPECT_EQ(cases[1].out, (std::vector<TensorDesc>{x, w}));
  EXPECT_EQ(cases[1].attrs.number("slope"), 3.0);
}

TEST(FusedCasesTest, ReferencesAreTheRecordedOps) {
  const auto cases = cases_of(R"({"type": "gates"})", {{DType::kF32, {4, 3}}});
  const double s = 1 / (1 + std::exp(-1.0));
  const auto out = reference(cases[0], ones(cases[0].in));
  for (const double y : out[0].data) EXPECT_NEAR(y, s, 1e-15);
  // d/dx x s(xw) = s + x w s (1 - s); for w the batch is summed.
  const auto grads = reference(cases[1], ones(cases[1].in));
  for (const double dx : grads[0].data) EXPECT_NEAR(dx, s + s * (1 - s), 1e-14);
  for (const double dw : grads[1].data) EXPECT_NEAR(dw, 4 * s * (1 - s), 1e-14);
}

TEST(FusedCasesTest, OutputsAmongTheInputsOfAGradientAreCompleted) {
  const auto cases = cases_of(R"({"type": "gates"})", {{DType::kF32, {4, 3}}});
  std::vector<HostTensor> in = ones(cases[1].in);
  cases[1].complete(in);
  const double s = 1 / (1 + std::exp(-1.0));
  for (const size_t i : {0u, 1u, 3u}) EXPECT_EQ(in[i].data, ones(cases[1].in)[i].data);
  for (const double y : in[2].data) EXPECT_NEAR(y, s, 1e-15);
  std::vector<HostTensor> forward = ones(cases[0].in);
  cases[0].complete(forward);
  for (const HostTensor& t : forward) EXPECT_EQ(t.data, std::vector<double>(t.data.size(), 1.0));
}

TEST(FusedCasesTest, ValuesForAllInputs) {
  const auto cases = cases_of(R"({"type": "gates"})", {{DType::kF32, {4, 3}}});
  const OpCase a = with_inputs(cases[1], 1), again = with_inputs(cases[1], 1);
  EXPECT_EQ(a.fixed, again.fixed);
  EXPECT_NE(a.fixed, with_inputs(cases[1], 2).fixed);
  ASSERT_EQ(a.fixed.size(), 4u);
  const double x = a.fixed[0].second[0], w = a.fixed[1].second[0];
  EXPECT_NEAR(a.fixed[2].second[0], x / (1 + std::exp(-x * w)), 1e-12);  // the forward output
  EXPECT_EQ(complete_attrs(cases[1].row, a.attrs), cases[1].attrs);
}

TEST(FusedCasesTest, AnEmptyBatch) {
  const auto cases = cases_of(R"({"type": "gates"})", {{DType::kF32, {0, 3}}});
  const auto grads = reference(cases[1], ones(cases[1].in));
  EXPECT_TRUE(grads[0].data.empty());
  EXPECT_EQ(grads[1].data, (std::vector<double>{0, 0, 0}));
}

TEST(FusedCasesTest, ALayerWithoutThemHasNone) {
  EXPECT_TRUE(cases_of(R"({"type": "act"})", {{DType::kF32, {4, 3}}}).empty());
}

TEST(FusedCasesTest, RefusalsSayWhatDoesNotFit) {
  const auto refusal = [](const char* layer, const std::vector<TensorDesc>& in) {
    try {
      cases_of(layer, in);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kUsage);
      return e.message();
    }
    return std::string("no error");
  };
  EXPECT_NE(refusal(R"({"type": "gates", "slop": 1})", {{DType::kF32, {4, 3}}}).find("\"slope\""),
            std::string::npos);
  EXPECT_NE(refusal(R"({"type": "gates"})", {}).find("needs the shape"), std::string::npos);
  EXPECT_NE(refusal(R"({"type": "gates"})", {{DType::kF32, {}}}).find("first dimension"),
            std::string::npos);
}

}  // namespace
}  // namespace testing
}  // namespace netcl
