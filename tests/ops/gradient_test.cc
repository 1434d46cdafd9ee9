// Every case of the op table: the reference writes every element, and the analytic gradient equals
// central differences, both in double, so that no rounding noise hides a wrong rule.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/autograd/backward.h"
#include "core/ops/case_inputs.h"
#include "core/ops/host_recorder.h"

namespace netcl {
namespace {

constexpr uint64_t kSeed = 20240611;
constexpr double kStep = 1e-5;
constexpr size_t kMaxProbes = 23;  // elements probed per input

struct OpRun {
  HostRecorder recorder;
  std::vector<ValueId> in, out;
};

void run_op(const OpRow& row, const OpCase& c, const std::vector<HostTensor>& inputs, OpRun& run) {
  for (const HostTensor& t : inputs) run.in.push_back(run.recorder.input(t));
  run.out = run.recorder.apply(row.name, run.in, c.attrs);
}

// d(seed . output k)/d(input i, element e) by central differences.
double numeric(const OpRow& row, const OpCase& c, std::vector<HostTensor> inputs,
               const HostTensor& seed, size_t k, size_t i, size_t e) {
  HostTensor side[2];
  const double x = inputs[i].data[e];
  for (int s = 0; s < 2; ++s) {
    inputs[i].data[e] = x + (s == 0 ? -kStep : kStep);
    OpRun run;
    run_op(row, c, inputs, run);
    side[s] = run.recorder.value(run.out[k]);
  }
  // Differences before the sum: elements that did not move cancel exactly.
  double sum = 0;
  for (size_t j = 0; j < seed.data.size(); ++j)
    sum += seed.data[j] * (side[1].data[j] - side[0].data[j]);
  return sum / (2 * kStep);
}

void check_gradient(const OpRow& row, const OpCase& c, const std::vector<HostTensor>& inputs,
                    size_t k) {
  OpRun run;
  run_op(row, c, inputs, run);
  const TensorDesc out = run.recorder.desc(run.out[k]);
  if (!is_float(out.dtype)) return;
  const HostTensor seed = random_tensor(out, 0.5, 1.5, kSeed + 1);
  const ValueId seed_id = run.recorder.input(seed);
  std::vector<ValueId> wanted;
  std::vector<size_t> which;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool constant = std::count(row.constants.begin(), row.constants.end(), i) > 0;
    if (!is_float(inputs[i].desc.dtype) || constant) continue;
    wanted.push_back(run.in[i]);
    which.push_back(i);
  }
  const auto grads = gradients(run.recorder, run.out[k], seed_id, wanted);
  for (size_t w = 0; w < wanted.size(); ++w) {
    const size_t n = inputs[which[w]].data.size();
    const size_t stride = std::max<size_t>(1, n / kMaxProbes);
    for (size_t e = 0; e < n; e += stride) {
      const double analytic = grads[w] ? run.recorder.value(*grads[w]).data[e] : 0;
      const double expected = numeric(row, c, inputs, seed, k, which[w], e);
      // Truncation of the differences is O(step^2), their rounding about 1e-16 * sum |out| / step.
      ASSERT_NEAR(analytic, expected, 2e-6 * std::max(1.0, std::fabs(expected)))
          << "output " << k << " input " << which[w] << " element " << e;
    }
  }
}

class RowTest : public testing::TestWithParam<std::string> {};

TEST_P(RowTest, ReferenceWritesEveryElement) {
  const OpRow& row = find_op(GetParam());
  for (size_t n = 0; n < row.cases.size(); ++n) {
    SCOPED_TRACE(testing::Message() << "case " << n << " " << row.cases[n].attrs.str());
    OpRun run;
    run_op(row, row.cases[n], case_inputs(row.cases[n], kSeed + n), run);
    for (const ValueId id : run.out) {
      const HostTensor& t = run.recorder.value(id);
      ASSERT_EQ(static_cast<int64_t>(t.data.size()), t.desc.shape.num_elements());
      for (const double x : t.data) ASSERT_TRUE(std::isfinite(x)) << t.desc.str();
      if (is_float(t.desc.dtype)) continue;
      for (const double x : t.data) ASSERT_EQ(x, std::floor(x));
    }
  }
}

TEST_P(RowTest, GradientEqualsDifferences) {
  const OpRow& row = find_op(GetParam());
  if (!row.gradient) GTEST_SKIP() << row.name << " is not differentiable";
  if (row.gradient_through_others) GTEST_SKIP() << row.name << ": see norm_test";
  for (size_t n = 0; n < row.cases.size(); ++n) {
    SCOPED_TRACE(testing::Message()
                 << "case " << n << " " << row.cases[n].attrs.str() << " seed " << kSeed + n);
    const std::vector<HostTensor> inputs = case_inputs(row.cases[n], kSeed + n);
    OpRun run;
    run_op(row, row.cases[n], inputs, run);
    for (size_t k = 0; k < run.out.size(); ++k) check_gradient(row, row.cases[n], inputs, k);
  }
}

TEST_P(RowTest, FactsExistForEveryCase) {
  const OpRow& row = find_op(GetParam());
  if (row.view || row.collective) GTEST_SKIP() << row.name << " has no kernel";
  for (const OpCase& c : row.cases) {
    const Attrs attrs = complete_attrs(row, c.attrs);
    Attrs facts;
    row.facts({row, c.in, attrs}, facts);
    ASSERT_FALSE(facts.items().empty());
    for (const auto& [key, item] : facts.items()) {
      ASSERT_FALSE(attrs.has(key)) << "fact and attribute share the name " << key;
    }
  }
}

std::vector<std::string> row_names() {
  std::vector<std::string> names;
  for (const OpRow& row : op_table()) names.push_back(row.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, RowTest, testing::ValuesIn(row_names()),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace netcl
