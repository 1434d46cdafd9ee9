// Settings of the tunables of every kernel set: each value of each tunable, in mixed combinations,
// on odd and edge cases, against the double-precision reference (core/verify/op_check.h).
//
// What a variant refuses is passed over, but each value must have run somewhere. Arguments:
// --device=SELECTOR, --plugins=DIR; --smallest (the smallest cases: for simulators); --every
// (many settings, all cases, and tiles that a CPU takes long to build: by hand).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "core/ops/case_inputs.h"
#include "core/runtime/kernel_set.h"
#include "core/verify/op_check.h"
#include "tests/ops/device_fixture.h"

namespace netcl {
namespace testing {
namespace {

constexpr uint64_t kSeed = 20250117;
// Unrolled products of a tile for GPUs: a CPU takes seconds to compile more.
constexpr int64_t kQuickTile = 256;

using Settings = std::vector<std::pair<std::string, int64_t>>;

std::string name_of(const std::string& variant, const Settings& settings) {
  std::string out = variant + "(";
  for (const auto& [name, value] : settings)
    out += (out.back() == '(' ? "" : ",") + name + "=" + std::to_string(value);
  return out + ")";
}

bool quick(const Settings& settings) {
  int64_t products = 1;
  for (const auto& [name, value] : settings)
    if (name == "TM" || name == "TN" || name == "DEPTH") products *= value;
  return products <= kQuickTile;
}

// Combinations in which every value of every tunable comes up again and again, in shuffled order.
class Combinations {
 public:
  explicit Combinations(const std::vector<Tunable>& tunables)
      : tunables_(tunables), orders_(tunables.size()) {}

  Settings next() {
    Settings out;
    for (size_t t = 0; t < tunables_.size(); ++t) {
      if (orders_[t].empty()) orders_[t] = shuffled(tunables_[t].values);
      out.emplace_back(tunables_[t].name, orders_[t].back());
      orders_[t].pop_back();
    }
    return out;
  }

 private:
  std::vector<int64_t> shuffled(std::vector<int64_t> values) {
    for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[bits_() % i]);
    return values;
  }

  const std::vector<Tunable>& tunables_;
  std::vector<std::vector<int64_t>> orders_;
  std::mt19937 bits_{static_cast<uint32_t>(kSeed)};
};

OpCase matmul_of(int64_t m, int64_t k, int64_t n, bool turned) {
  OpCase c;
  c.in = {{DType::kF32, turned ? Shape{k, m} : Shape{m, k}},
          {DType::kF32, turned ? Shape{n, k} : Shape{k, n}},
          {DType::kF32, Shape{n}}};
  c.attrs = {{"transpose_a", int64_t{turned}},
             {"transpose_b", int64_t{turned}},
             {"activation", std::string("relu")}};
  return c;
}

// Odd sizes over several blocks and panels; the op table's own cases are mostly smaller.
std::vector<OpCase> large_cases(const std::string& op) {
  if (op == "matmul")
    return {matmul_of(67, 35, 131, false), matmul_of(67, 35, 131, true),
            matmul_of(37, 19, 192, false), matmul_of(197, 5, 48, false)};
  if (op == "conv2d") {
    OpCase c;
    c.in = {{DType::kF32, Shape{2, 5, 7, 11}}, {DType::kF32, Shape{13, 5, 3, 3}}};
    c.attrs = {{"padding", std::vector<int64_t>{1, 1}}};
    return {c};
  }
  if (op == "conv2d_grad_input") {
    OpCase c;
    c.in = {{DType::kF32, Shape{2, 5, 7, 11}}, {DType::kF32, Shape{5, 13, 3, 3}}};
    c.attrs = {{"padding", std::vector<int64_t>{1, 1}}, {"input", std::vector<int64_t>{7, 11}}};
    return {c};
  }
  if (op == "conv2d_grad_weight") {
    OpCase c;
    c.in = {{DType::kF32, Shape{2, 5, 7, 11}}, {DType::kF32, Shape{2, 13, 7, 11}}};
    c.attrs = {{"padding", std::vector<int64_t>{1, 1}}, {"kernel", std::vector<int64_t>{3, 3}}};
    return {c};
  }
  return {};
}

// Elements of the inputs; cases without any, which launch nothing, count as the largest.
int64_t size_of(const OpCase& c) {
  int64_t size = 0;
  for (const TensorDesc& in : c.in) {
    if (in.shape.num_elements() == 0) return std::numeric_limits<int64_t>::max();
    size += in.shape.num_elements();
  }
  return size;
}

class SettingsOfOp {
 public:
  explicit SettingsOfOp(const OpRow& row) : row_(row) {
    const DeviceArgs& args = shared_device().args();
    std::vector<OpCase> cases = args.smallest ? std::vector<OpCase>() : large_cases(row.name);
    large_ = cases.size();
    for (const OpCase& c : typed_cases(row, DType::kF32)) cases.push_back(c);
    if (args.smallest) {
      std::stable_sort(cases.begin(), cases.end(),
                       [](const OpCase& a, const OpCase& b) { return size_of(a) < size_of(b); });
    }
    for (size_t n = 0; n < cases.size(); ++n) checks_.emplace_back(row, cases[n], kSeed + n);
  }

  void run(const Manifest& manifest) {
    DeviceFixture& f = shared_device();
    const KernelSet set(f.plugins().load(manifest.id));
    std::map<std::string, std::vector<Tunable>> variants;
    for (const OpCheck& check : checks_) {
      for (const std::string& variant : set.variants(f.device(), check.question())) {
        if (variants.count(variant) == 0)
          variants[variant] = set.tunables(f.device(), check.question(), variant);
      }
    }
    for (const auto& [variant, tunables] : variants) {
      if (tunables.empty()) continue;
      SCOPED_TRACE(row_.name + " " + manifest.id + ":" + variant);
      run_variant(set, variant, tunables);
    }
  }

  size_t runs() const { return runs_; }

 private:
  using Value = std::pair<std::string, int64_t>;

  void run_variant(const KernelSet& set, const std::string& variant,
                   const std::vector<Tunable>& tunables) {
    const DeviceArgs& args = shared_device().args();
    std::set<Value> missing;
    for (const Tunable& tunable : tunables)
      for (const int64_t value : tunable.values) missing.insert({tunable.name, value});
    Combinations combinations(tunables);
    size_t done = 0;
    for (size_t i = 0; i < 400; ++i) {
      const Settings settings = combinations.next();
      if (!args.every && !quick(settings)) continue;
      const bool news = std::any_of(settings.begin(), settings.end(),
                                    [&](const Value& v) { return missing.count(v) != 0; });
      if (!news && !(args.every && done < 60)) continue;
      // Every other one at a large case, if there is any that it serves.
      const size_t first = i % 2 == 0 && large_ > 0 ? i / 2 % large_ : large_ + i / 2;
      if (!run_settings(set, name_of(variant, settings), first)) continue;
      if (::testing::Test::HasFatalFailure()) return;
      for (const Value& v : settings) missing.erase(v);
      ++done;
    }
    for (const auto& [name, value] : missing)
      ADD_FAILURE() << name << "=" << value << " ran nowhere: no case, or `when` refuses it";
  }

  // Runs the settings at the cases from number `first` on that they serve. False: at none.
  bool run_settings(const KernelSet& set, const std::string& variant, size_t first) {
    DeviceFixture& f = shared_device();
    const size_t wanted = f.args().every ? checks_.size() : size_t{1};
    size_t served = 0;
    for (size_t n = 0; n < checks_.size() && served < wanted; ++n) {
      const size_t at = f.args().smallest ? n : (first + n) % checks_.size();
      const OpCheck& check = checks_[at];
      std::string reason;
      const auto recipe = set.plan(f.device(), check.question(), variant, &reason);
      if (recipe == nullptr) continue;
      const OpVerdict verdict = check.judge(*f.queue(), *recipe);
      EXPECT_TRUE(verdict.right()) << variant << " at " << check.question().key() << ", seed "
                                   << kSeed + at << ": " << verdict.text();
      ++served;
      ++runs_;
    }
    return served > 0;
  }

  const OpRow& row_;
  std::vector<OpCheck> checks_;
  size_t large_ = 0;  // the first ones
  size_t runs_ = 0;
};

class SettingsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(SettingsTest, EveryValueIsRight) {
  const OpRow& row = find_op(GetParam());
  SettingsOfOp settings(row);
  for (const Manifest* manifest : shared_device().plugins().manifests("kernels")) {
    settings.run(*manifest);
    if (HasFatalFailure()) return;
  }
  std::printf("%s: %zu runs\n", row.name.c_str(), settings.runs());
}

std::vector<std::string> ops_with_kernels() {
  std::vector<std::string> names;
  for (const OpRow& row : op_table())
    if (!row.view && !row.collective && row.family.empty()) names.push_back(row.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, SettingsTest, ::testing::ValuesIn(ops_with_kernels()),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace testing
}  // namespace netcl
