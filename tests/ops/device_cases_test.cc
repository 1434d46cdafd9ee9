// Every row and case of the op table on a device, every variant of every kernel set that serves it,
// against the double-precision reference: outputs begin as poison, inputs and outputs lie between
// guard bands, and inputs stay as they were. Gradients as the tape computes them on the device
// against the same rules in double on the host.
//
// Arguments: --device=SELECTOR, --plugins=DIR, --smallest (each variant once, at the smallest case
// that it serves, without gradients: for simulators), --partial (cases that no kernel set in the
// directory serves are passed over, but not all of an op: for sets of few ops).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <set>

#include "core/autograd/backward.h"
#include "core/autograd/tape.h"
#include "core/ops/case_inputs.h"
#include "core/ops/host_recorder.h"
#include "core/verify/host_bytes.h"
#include "core/verify/op_check.h"
#include "tests/ops/device_fixture.h"

namespace netcl {
namespace testing {
namespace {

constexpr uint64_t kSeed = 20240611;
// Gradient rules are made of ops, and each rounds what it stores to 16 bits.
constexpr double kComposed = 4;

struct Counts {
  size_t ops = 0, cases = 0, runs = 0, gradients = 0;
  double worst = 0, worst_gradient = 0;  // in units of the tolerance
};
Counts g_counts;

void check_variant(const OpCheck& check, const KernelPin& pin) {
  SCOPED_TRACE(::testing::Message() << pin.plugin << "/" << pin.variant);
  DeviceFixture& f = shared_device();
  const OpVerdict verdict = check.judge(*f.queue(), *f.recipe(check.question(), pin));
  ASSERT_TRUE(verdict.right()) << verdict.text();
  g_counts.worst = std::max(g_counts.worst, verdict.worst);
  ++g_counts.runs;
}

std::vector<OpCheck> prepare(const OpRow& row) {
  std::vector<OpCheck> out;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const std::vector<OpCase> cases = typed_cases(row, dtype);
    for (size_t n = 0; n < cases.size(); ++n) out.emplace_back(row, cases[n], kSeed + n);
  }
  return out;
}

class DeviceCases : public ::testing::TestWithParam<std::string> {};

TEST_P(DeviceCases, ForwardEqualsReference) {
  const OpRow& row = find_op(GetParam());
  if (row.view || row.collective) GTEST_SKIP() << row.name << " has no kernel";
  DeviceFixture& f = shared_device();
  const std::vector<OpCheck> cases = prepare(row);
  std::vector<size_t> order(cases.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const bool smallest = f.args().smallest;
  if (smallest) {
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return cases[a].num_elements() < cases[b].num_elements();
    });
  }
  std::set<std::string> seen;
  bool served = false;
  ++g_counts.ops;
  for (const size_t n : order) {
    const OpCheck& p = cases[n];
    if (smallest && (p.out().empty() || p.out()[0].data.size() < 2)) continue;
    SCOPED_TRACE(::testing::Message() << "case " << n << " of " << row.name << " seed " << kSeed + n
                                      << " " << p.question().key());
    const std::vector<KernelPin> variants = f.variants(p.question());
    if (variants.empty() && f.args().partial) continue;
    ASSERT_FALSE(variants.empty()) << "nothing computes it";
    bool counted = false;
    for (const KernelPin& pin : variants) {
      if (smallest && !seen.insert(pin.plugin + "/" + pin.variant).second) continue;
      check_variant(p, pin);
      if (HasFatalFailure()) return;
      counted = true;
    }
    if (counted) ++g_counts.cases;
    served = served || counted;
  }
  EXPECT_TRUE(served || !f.args().partial) << "no case of " << row.name << " is computed";
}

// The gradients of output k with respect to every f32 input, on the device and on the host.
void check_gradients(const OpCheck& p, size_t k, uint64_t seed) {
  DeviceFixture& f = shared_device();
  HostRecorder host;
  Tape tape(f.eager());
  std::vector<ValueId> host_in, tape_in, host_wanted, tape_wanted;
  for (const HostTensor& t : p.in()) {
    host_in.push_back(host.input(t));
    tape_in.push_back(tape.watch(Tensor::from_host(f.queue(), t.desc, to_bytes(t).data())));
    if (!is_float(t.desc.dtype)) continue;
    host_wanted.push_back(host_in.back());
    tape_wanted.push_back(tape_in.back());
  }
  const ValueId host_out = host.apply(p.row().name, host_in, p.op_case().attrs).at(k);
  const ValueId tape_out = tape.apply(p.row().name, tape_in, p.op_case().attrs).at(k);
  const HostTensor dy = random_tensor(p.out_descs()[k], 0.5, 1.5, seed);
  const ValueId tape_seed = tape.watch(Tensor::from_host(f.queue(), dy.desc, to_bytes(dy).data()));
  const auto want = gradients(host, host_out, host.input(dy), host_wanted);
  const auto got = tape.backward(tape_out, tape_wanted, tape_seed);
  for (size_t i = 0; i < want.size(); ++i) {
    SCOPED_TRACE(::testing::Message() << "gradient of float input " << i << ", output " << k);
    ASSERT_EQ(want[i].has_value(), got[i].has_value());
    if (!want[i]) continue;
    const HostTensor& w = host.value(*want[i]);
    double size = 1;  // sums run over other elements of the same size
    for (const double x : w.data) size = std::max(size, std::fabs(x));
    const HostTensor scale{w.desc, std::vector<double>(w.data.size(), size)};
    std::vector<uint8_t> bytes(w.desc.size_bytes());
    got[i]->copy_to_host(bytes.data());
    const DType rounding = p.widest_rounding();
    const double factor = rounding == DType::kF32 ? 1 : kComposed;
    const std::string difference =
        first_difference(from_bytes(w.desc, bytes), w, scale, factor * p.tolerance(rounding),
                         &g_counts.worst_gradient);
    ASSERT_EQ(difference, "");
    ++g_counts.gradients;
  }
}

TEST_P(DeviceCases, GradientsEqualTheHosts) {
  const OpRow& row = find_op(GetParam());
  if (!row.gradient) GTEST_SKIP() << row.name << " is not differentiable";
  if (row.collective) GTEST_SKIP() << row.name << " has no kernel";
  if (shared_device().args().smallest) GTEST_SKIP() << "--smallest";
  const std::vector<OpCheck> cases = prepare(row);
  for (size_t n = 0; n < cases.size(); ++n) {
    SCOPED_TRACE(::testing::Message() << "case " << n << " of " << row.name << " seed " << kSeed + n
                                      << " " << cases[n].question().key());
    for (size_t k = 0; k < cases[n].out().size(); ++k) {
      if (!is_float(cases[n].out_descs()[k].dtype)) continue;
      check_gradients(cases[n], k, kSeed + 1000 + n);
      if (HasFatalFailure()) return;
    }
  }
}

std::vector<std::string> row_names() {
  std::vector<std::string> names;
  for (const OpRow& row : op_table()) names.push_back(row.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, DeviceCases, ::testing::ValuesIn(row_names()),
                         [](const auto& instance) { return instance.param; });

class Summary : public ::testing::Environment {
 public:
  void TearDown() override {
    const DeviceInfo& info = shared_device().device().info();
    std::printf(
        "device %s (%s): %zu ops, %zu cases, %zu runs over variants, %zu gradients; worst error "
        "%.2f and %.2f of the tolerances\n",
        info.selector.c_str(), info.name.c_str(), g_counts.ops, g_counts.cases, g_counts.runs,
        g_counts.gradients, g_counts.worst, g_counts.worst_gradient);
  }
};
const auto* const g_summary = ::testing::AddGlobalTestEnvironment(new Summary);

}  // namespace
}  // namespace testing
}  // namespace netcl
