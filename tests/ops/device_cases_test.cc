// Every row and case of the op table on a device, every variant of every kernel set that serves it,
// against the double-precision reference: outputs begin as poison, inputs and outputs lie between
// guard bands, and inputs stay as they were. Gradients as the tape computes them on the device
// against the same rules in double on the host.
//
// Arguments: --device=SELECTOR, --plugins=DIR, --smallest (each variant once, at the smallest case
// that it serves, without gradients: for simulators).
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
#include "tests/ops/device_fixture.h"

namespace netcl {
namespace testing {
namespace {

constexpr uint64_t kSeed = 20240611;
// |got - reference| <= kTolerance * (|reference| + scale). `scale` is 1, the size of the inputs,
// and for sums the sum of the terms' sizes. An f32 operation rounds to 6e-8; OpenCL allows exp, log
// and their like 3 to 5 units in the last place and pow 16 (2e-6), and expressions take a few of
// them. Sums of up to 1031 terms in any order stay below 1031 * 6e-8 of that scale, in practice far
// below.
constexpr double kTolerance = 5e-6;
// 16-bit results are computed in f32 and rounded once: half a unit in the last place, 2^-12 and
// 2^-9 (of the value; of 6e-8, the least f16 step, near 0).
constexpr double kF16Tolerance = 5e-4, kBF16Tolerance = 4e-3;
// Gradient rules are made of ops, and each rounds what it stores to 16 bits.
constexpr double kComposed = 4;

double storage_tolerance(DType dtype) {
  return dtype == DType::kF16 ? kF16Tolerance : dtype == DType::kBF16 ? kBF16Tolerance : 0;
}

struct Counts {
  size_t ops = 0, cases = 0, runs = 0, gradients = 0;
  double worst = 0, worst_gradient = 0;  // in units of the tolerance
};
Counts g_counts;

std::vector<const HostTensor*> pointers(const std::vector<HostTensor>& tensors) {
  std::vector<const HostTensor*> out;
  for (const HostTensor& t : tensors) out.push_back(&t);
  return out;
}

// One case with its inputs, its reference and the size of the sums behind every element.
struct Prepared {
  Prepared(const OpRow& r, OpCase c, uint64_t seed)
      : row(r),
        test_case(std::move(c)),
        attrs(complete_attrs(r, test_case.attrs)),
        in(case_inputs(test_case, seed)) {
    out_descs = row.infer({row, test_case.in, attrs});
    out = evaluate(in, attrs);
    scale = scale_of_sums();
  }

  KernelQuestion question() const { return {row, test_case.in, out_descs, attrs}; }
  size_t num_elements() const {
    size_t n = 0;
    for (const auto* list : {&in, &out})
      for (const HostTensor& t : *list) n += t.data.size();
    return n;
  }
  // The row's, or more where the result or an input of a gradient is stored in 16 bits.
  double tolerance(DType dtype) const {
    return std::max(storage_tolerance(dtype),
                    test_case.tolerance > 0 ? test_case.tolerance : kTolerance);
  }
  DType widest_rounding() const {
    DType out_type = DType::kF32;
    for (const auto* list : {&test_case.in, &out_descs}) {
      for (const TensorDesc& d : *list) {
        if (storage_tolerance(d.dtype) > storage_tolerance(out_type)) out_type = d.dtype;
      }
    }
    return out_type;
  }

  const OpRow& row;
  OpCase test_case;
  Attrs attrs;
  std::vector<HostTensor> in, out, scale;
  std::vector<TensorDesc> out_descs;

 private:
  std::vector<HostTensor> scale_of_sums() const {
    std::vector<HostTensor> sizes = in, result = out;
    const bool sum = row.name == "matmul" || row.name == "sum" || row.name == "mean";
    if (sum) {  // the same sums over the terms' sizes
      for (HostTensor& t : sizes)
        for (double& x : t.data) x = std::fabs(x);
      Attrs linear = attrs;
      if (row.name == "matmul") linear.set("activation", std::string("none"));
      return evaluate(sizes, linear);
    }
    for (HostTensor& t : result) std::fill(t.data.begin(), t.data.end(), 1.0);
    if (row.name == "log_softmax_grad") {  // dy - exp(y) * sum(dy)
      for (double& x : sizes[0].data) x = std::fabs(x);
      result = evaluate(sizes, attrs);
      for (size_t i = 0; i < sizes[0].data.size(); ++i)
        result[0].data[i] = std::fabs(result[0].data[i]) + 2 * sizes[0].data[i];
    }
    return result;
  }
  std::vector<HostTensor> evaluate(const std::vector<HostTensor>& inputs, const Attrs& a) const {
    std::vector<HostTensor> result;
    for (const TensorDesc& d : out_descs)
      result.push_back({d, std::vector<double>(static_cast<size_t>(d.shape.num_elements()))});
    row.reference({row, test_case.in, a}, pointers(inputs), result);
    return result;
  }
};

void expect_close(const HostTensor& got, const HostTensor& want, const HostTensor& scale,
                  double tolerance, double* worst) {
  ASSERT_EQ(got.data.size(), want.data.size());
  for (size_t i = 0; i < want.data.size(); ++i) {
    const double g = got.data[i], w = want.data[i];
    if (!is_float(want.desc.dtype)) {
      ASSERT_EQ(g, w) << "element " << i;
    } else if (std::isnan(w)) {
      ASSERT_TRUE(std::isnan(g)) << "element " << i << " is " << g << ", not NaN";
    } else if (g != w) {
      const double limit = tolerance * (std::fabs(w) + scale.data[i]);
      ASSERT_LE(std::fabs(g - w), limit) << "element " << i << ": got " << g << ", wanted " << w;
      *worst = std::max(*worst, std::fabs(g - w) / limit);
    }
  }
}

uint8_t poison_of(const TensorDesc& desc) { return is_float(desc.dtype) ? 0xff : 0x7f; }

// Runs one recipe. `in_place`: outputs lie where the row says that they may, in the inputs.
void check_recipe(const Prepared& p, const Recipe& recipe, bool in_place) {
  DeviceFixture& f = shared_device();
  std::vector<GuardedBuffer> in, out, scratch;
  for (const HostTensor& t : p.in)
    in.emplace_back(*f.queue(), f.device(), to_bytes(t), poison_of(t.desc));
  for (const TensorDesc& d : p.out_descs) {
    out.emplace_back(*f.queue(), f.device(), std::vector<uint8_t>(d.size_bytes(), poison_of(d)),
                     poison_of(d));
  }
  for (const uint64_t bytes : recipe.scratch_bytes)
    scratch.emplace_back(*f.queue(), f.device(), std::vector<uint8_t>(bytes, 0xff), 0xff);
  std::vector<cl::Buffer> in_buffers, out_buffers, scratch_buffers;
  for (const GuardedBuffer& b : in) in_buffers.push_back(b.buffer());
  for (const GuardedBuffer& b : scratch) scratch_buffers.push_back(b.buffer());
  std::set<size_t> overwritten;
  std::vector<GuardedBuffer*> results;
  for (size_t i = 0; i < out.size(); ++i) {
    const bool shared = in_place && i < p.row.aliases.size() && p.row.aliases[i] >= 0;
    const size_t at = shared ? static_cast<size_t>(p.row.aliases[i]) : 0;
    results.push_back(shared ? &in[at] : &out[i]);
    if (shared) overwritten.insert(at);
    out_buffers.push_back(results.back()->buffer());
  }
  Executable kernel(f.device(), recipe);
  kernel.bind(in_buffers, out_buffers, scratch_buffers);
  kernel.enqueue(f.queue()->cl());
  f.queue()->finish();
  for (size_t i = 0; i < results.size(); ++i) {
    SCOPED_TRACE(::testing::Message() << "output " << i);
    const HostTensor got = from_bytes(p.out_descs[i], results[i]->read());
    expect_close(got, p.out[i], p.scale[i], p.tolerance(p.out_descs[i].dtype), &g_counts.worst);
    EXPECT_TRUE(results[i]->intact()) << "written beyond the output";
  }
  for (size_t i = 0; i < in.size(); ++i) {
    if (overwritten.count(i) > 0) continue;
    EXPECT_TRUE(in[i].unchanged()) << "input " << i << " was written";
  }
  for (size_t i = 0; i < scratch.size(); ++i)
    EXPECT_TRUE(scratch[i].intact()) << "written beyond scratch buffer " << i;
}

void check_variant(const Prepared& p, const KernelPin& pin) {
  SCOPED_TRACE(::testing::Message() << pin.plugin << "/" << pin.variant);
  const auto recipe = shared_device().recipe(p.question(), pin);
  check_recipe(p, *recipe, false);
  const auto& aliases = p.row.aliases;
  if (std::any_of(aliases.begin(), aliases.end(), [](int a) { return a >= 0; }))
    check_recipe(p, *recipe, true);
  ++g_counts.runs;
}

std::vector<Prepared> prepare(const OpRow& row) {
  std::vector<Prepared> out;
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
  const std::vector<Prepared> cases = prepare(row);
  std::vector<size_t> order(cases.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const bool smallest = f.args().smallest;
  if (smallest) {
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return cases[a].num_elements() < cases[b].num_elements();
    });
  }
  std::set<std::string> seen;
  ++g_counts.ops;
  for (const size_t n : order) {
    const Prepared& p = cases[n];
    if (smallest && (p.out.empty() || p.out[0].data.size() < 2)) continue;
    SCOPED_TRACE(::testing::Message() << "case " << n << " of " << row.name << " seed " << kSeed + n
                                      << " " << p.question().key());
    const std::vector<KernelPin> variants = f.variants(p.question());
    ASSERT_FALSE(variants.empty()) << "nothing computes it";
    bool counted = false;
    for (const KernelPin& pin : variants) {
      if (smallest && !seen.insert(pin.plugin + "/" + pin.variant).second) continue;
      check_variant(p, pin);
      if (HasFatalFailure()) return;
      counted = true;
    }
    if (counted) ++g_counts.cases;
  }
}

// The gradients of output k with respect to every f32 input, on the device and on the host.
void check_gradients(const Prepared& p, size_t k, uint64_t seed) {
  DeviceFixture& f = shared_device();
  HostRecorder host;
  Tape tape(f.eager());
  std::vector<ValueId> host_in, tape_in, host_wanted, tape_wanted;
  for (const HostTensor& t : p.in) {
    host_in.push_back(host.input(t));
    tape_in.push_back(tape.watch(Tensor::from_host(f.queue(), t.desc, to_bytes(t).data())));
    if (!is_float(t.desc.dtype)) continue;
    host_wanted.push_back(host_in.back());
    tape_wanted.push_back(tape_in.back());
  }
  const ValueId host_out = host.apply(p.row.name, host_in, p.test_case.attrs).at(k);
  const ValueId tape_out = tape.apply(p.row.name, tape_in, p.test_case.attrs).at(k);
  const HostTensor dy = random_tensor(p.out_descs[k], 0.5, 1.5, seed);
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
    expect_close(from_bytes(w.desc, bytes), w, scale, factor * p.tolerance(rounding),
                 &g_counts.worst_gradient);
    ++g_counts.gradients;
  }
}

TEST_P(DeviceCases, GradientsEqualTheHosts) {
  const OpRow& row = find_op(GetParam());
  if (!row.gradient) GTEST_SKIP() << row.name << " is not differentiable";
  if (row.collective) GTEST_SKIP() << row.name << " has no kernel";
  if (shared_device().args().smallest) GTEST_SKIP() << "--smallest";
  const std::vector<Prepared> cases = prepare(row);
  for (size_t n = 0; n < cases.size(); ++n) {
    SCOPED_TRACE(::testing::Message() << "case " << n << " of " << row.name << " seed " << kSeed + n
                                      << " " << cases[n].question().key());
    for (size_t k = 0; k < cases[n].out.size(); ++k) {
      if (!is_float(cases[n].out_descs[k].dtype)) continue;
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
