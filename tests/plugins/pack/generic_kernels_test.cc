// The generic kernels against plain host loops on the first OpenCL device, every variant that
// serves: sizes are odd, outputs poisoned. The program's last argument is the plugin's directory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

#include "tests/plugins/pack/cl_runner.h"

namespace netcl {
namespace testing {
namespace {

ClRunner* g_runner = nullptr;  // made by main, which alone knows the directory
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> uniform(size_t n, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::vector<float> out(n);
  for (float& v : out) v = static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f;
  return out;
}
size_t size(int64_t n) { return static_cast<size_t>(n); }

void expect_near(const std::vector<float>& got, const std::vector<double>& want, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i])) {
      ASSERT_TRUE(std::isnan(got[i])) << what << " [" << i << "] " << got[i];
    } else if (std::isinf(want[i])) {
      ASSERT_EQ(got[i], want[i]) << what << " [" << i << "]";
    } else {
      ASSERT_NEAR(got[i], want[i], tolerance * (1 + std::fabs(want[i])))
          << what << " [" << i << "]";
    }
  }
}

// Runs every variant of the key, or the first, and compares output 0.
void check(const OpKey& key, const std::vector<Bytes>& in, const std::vector<double>& want,
           double tolerance, const std::string& what, bool all = true) {
  std::vector<std::string> variants = g_runner->variants(key);
  ASSERT_FALSE(variants.empty()) << what;
  if (!all) variants.resize(1);
  for (const std::string& variant : variants) {
    expect_near(from_bytes<float>(g_runner->run(key, in, variant).at(0)), want, tolerance,
                what + ", variant " + variant);
  }
}

struct MatmulCase {
  int64_t m, n, k;
  int ta, tb, bias;
  const char* activation;
};

double activated(const std::string& name, double v) {
  if (name == "relu") return v < 0 ? 0 : v;
  if (name == "tanh") return std::tanh(v);
  if (name == "sigmoid") return 1 / (1 + std::exp(-v));
  return v;
}

// `all`: every variant; a CPU takes seconds to compile each of a GPU's unrolled tiles.
void check_matmul(const MatmulCase& c, bool all) {
  OpKey key("matmul");
  key.in(c.ta ? std::vector<int64_t>{c.k, c.m} : std::vector<int64_t>{c.m, c.k});
  key.in(c.tb ? std::vector<int64_t>{c.n, c.k} : std::vector<int64_t>{c.k, c.n});
  if (c.bias) key.in({c.n});
  key.out({c.m, c.n}).integer("transpose_a", c.ta).integer("transpose_b", c.tb);
  key.integer("M", c.m).integer("N", c.n).integer("K", c.k).integer("has_bias", c.bias);
  key.integer("batch", 1).integer("a_batch", 0).integer("b_batch", 0);
  key.text("activation", c.activation);
  const auto a = uniform(size(c.m * c.k), 1), b = uniform(size(c.k * c.n), 2);
  const auto bias = uniform(size(c.n), 3);
  std::vector<double> want(size(c.m * c.n));
  for (int64_t m = 0; m < c.m; ++m) {
    for (int64_t n = 0; n < c.n; ++n) {
      double sum = c.bias ? bias[size(n)] : 0;
      for (int64_t k = 0; k < c.k; ++k) {
        sum += double{a[size(c.ta ? k * c.m + m : m * c.k + k)]} *
               b[size(c.tb ? n * c.k + k : k * c.n + n)];
      }
      want[size(m * c.n + n)] = activated(c.activation, sum);
    }
  }
  std::vector<Bytes> in = {to_bytes(a), to_bytes(b)};
  if (c.bias) in.push_back(to_bytes(bias));
  check(key, in, want, 1e-5,
        "matmul " + std::to_string(c.m) + "x" + std::to_string(c.n) + "x" + std::to_string(c.k) +
            " ta=" + std::to_string(c.ta) + " tb=" + std::to_string(c.tb) + " " + c.activation,
        all);
}

TEST(GenericKernels, MatmulInAllForms) {
  for (int form = 0; form < 4; ++form) {
    check_matmul({37, 29, 19, form & 1, form >> 1, 0, "none"}, false);
    check_matmul({67, 131, 33, form & 1, form >> 1, 1, "relu"}, true);
  }
  for (const MatmulCase& c : {MatmulCase{5, 32, 7, 0, 0, 1, "tanh"},
                              {5, 10, 7, 0, 0, 1, "sigmoid"},
                              {1, 1, 1, 0, 0, 0, "none"},
                              {3, 5, 0, 0, 0, 1, "relu"},
                              {1, 17, 300, 1, 1, 0, "none"},
                              {129, 16, 8, 1, 0, 0, "none"}}) {
    check_matmul(c, c.bias != 0 && c.k == 0);
  }
}

TEST(GenericKernels, EmptyMatmulLaunchesNothing) {
  check_matmul({0, 5, 3, 0, 0, 0, "none"}, false);
}

// What the core says of an elementwise op whose last dimension has `inner` elements.
OpKey& runs_facts(OpKey& key, int64_t inner, const std::vector<int64_t>& steps) {
  key.integer("inner", inner);
  for (size_t i = 0; i < steps.size(); ++i) key.integer("step" + std::to_string(i), steps[i]);
  return key;
}

TEST(GenericKernels, ElementwiseDense) {
  constexpr int64_t kN = 1003;
  OpKey key("axpy", "elementwise");
  key.in({kN}).in({kN}).out({kN}).integer("n", kN).text("mode", "dense").text("ctype", "float");
  runs_facts(key, kN, {1, 1, 0});
  key.text("expr", "x0 * p0 + (x1 > p1 ? x1 : -x1)").number("p0", 2.5).number("p1", 0.25);
  auto a = uniform(kN, 1);
  const auto b = uniform(kN, 2);
  a[5] = kNan;
  std::vector<double> want;
  for (size_t i = 0; i < a.size(); ++i) want.push_back(a[i] * 2.5 + (b[i] > 0.25f ? b[i] : -b[i]));
  check(key, {to_bytes(a), to_bytes(b)}, want, 1e-6, "dense");
}

TEST(GenericKernels, ElementwiseStridedBroadcasts) {
  // y[3,4,5] = x0[3,1,5] - x1[4,1] with x2[5] chosen where x0 > 0.
  OpKey key("mix", "elementwise");
  key.in({3, 1, 5}).in({4, 1}).in({5}).out({3, 4, 5}).integer("n", 60).text("mode", "strided");
  key.text("ctype", "float").text("expr", "x0 > 0 ? x0 - x1 : x2").number("p0", 0).number("p1", 0);
  key.list("dims", {1, 1, 1, 1, 1, 3, 4, 5}).list("strides0", {0, 0, 0, 0, 0, 5, 0, 1});
  key.list("strides1", {0, 0, 0, 0, 0, 0, 1, 0}).list("strides2", {0, 0, 0, 0, 0, 0, 0, 1});
  runs_facts(key, 5, {1, 0, 1});
  const auto a = uniform(15, 1), b = uniform(4, 2), c = uniform(5, 3);
  std::vector<double> want;
  for (size_t i = 0; i < 60; ++i) {
    const size_t o = i / 20, m = i / 5 % 4, n = i % 5;
    want.push_back(a[o * 5 + n] > 0 ? a[o * 5 + n] - b[m] : c[n]);
  }
  check(key, {to_bytes(a), to_bytes(b), to_bytes(c)}, want, 1e-6, "strided");
}

TEST(GenericKernels, ElementwiseIntegersAndTruthValues) {
  OpKey add("add", "elementwise");
  add.in({3}, NETCL_I32).in({3}, NETCL_U8).out({3}, NETCL_I32).integer("n", 3);
  add.text("mode", "dense").text("ctype", "int").text("expr", "x0 + x1");
  runs_facts(add, 3, {1, 1, 0});
  const Bytes bytes = {1, 2, 255};
  EXPECT_EQ(from_bytes<int32_t>(
                g_runner->run(add, {to_bytes(std::vector<int32_t>{-5, 16777217, 1}), bytes})[0]),
            (std::vector<int32_t>{-4, 16777219, 256}));
  OpKey cast("cast", "elementwise");
  cast.in({3}).out({3}, NETCL_BOOL).integer("n", 3);
  cast.text("mode", "dense").text("ctype", "float").text("expr", "x0");
  runs_facts(cast, 3, {1, 0, 0});
  EXPECT_EQ(g_runner->run(cast, {to_bytes(std::vector<float>{0.5f, 0, -2})})[0], (Bytes{1, 0, 1}));
}

struct Rows {
  int64_t outer, reduce, inner;
};
const Rows kRows[] = {{3, 7, 1},   {1, 1000, 1}, {5, 129, 1}, {2, 9, 13},
                      {1, 300, 8}, {4, 1, 3},    {2, 5000, 1}};

OpKey& rows_facts(OpKey& key, const Rows& r) {
  return key.integer("outer", r.outer).integer("reduce", r.reduce).integer("inner", r.inner);
}
// Calls visit with the column of each result.
template <typename Visit>
void columns(const std::vector<float>& x, const Rows& r, Visit&& visit) {
  for (int64_t i = 0; i < r.outer * r.inner; ++i) {
    std::vector<double> column;
    for (int64_t k = 0; k < r.reduce; ++k) {
      column.push_back(x[size((i / r.inner * r.reduce + k) * r.inner + i % r.inner)]);
    }
    visit(column);
  }
}

double reduced(const std::string& op, const std::vector<double>& column) {
  double sum = 0, squares = 0;
  for (const double v : column) sum += v;
  const auto n = static_cast<double>(column.size());
  for (const double v : column) squares += (v - sum / n) * (v - sum / n);
  if (op == "sum") return sum;
  if (op == "mean") return sum / n;
  if (op == "var") return squares / (n - 1);
  if (column.empty()) return op == "max_reduce" ? -kInf : kInf;
  return op == "max_reduce" ? *std::max_element(column.begin(), column.end())
                            : *std::min_element(column.begin(), column.end());
}

TEST(GenericKernels, Reductions) {
  std::vector<Rows> cases(std::begin(kRows), std::end(kRows));
  cases.push_back({2, 0, 1});
  cases.push_back({2, 0, 9});
  for (const std::string op : {"sum", "mean", "max_reduce", "min_reduce", "var"}) {
    for (const Rows& r : cases) {
      if (op == "var" && r.reduce == 1) continue;
      OpKey key(op);
      key.in({r.outer, r.reduce, r.inner}).out({r.outer, r.inner});
      rows_facts(key, r);
      if (op == "var") key.integer("correction", 1);
      const auto x = uniform(size(r.outer * r.reduce * r.inner));
      std::vector<double> want;
      columns(x, r, [&](const std::vector<double>& c) { want.push_back(reduced(op, c)); });
      if (r.reduce == 0 && op == "var") want.assign(want.size(), kNan);
      check(key, {to_bytes(x)}, want, 2e-5, op + " over " + std::to_string(r.reduce));
    }
  }
}

TEST(GenericKernels, MaximumSpreadsNan) {
  OpKey key("max_reduce");
  key.in({1, 300, 1}).out({1, 1});
  rows_facts(key, {1, 300, 1});
  for (const size_t at : {0u, 7u, 299u}) {
    auto x = uniform(300);
    x[at] = kNan;
    check(key, {to_bytes(x)}, {kNan}, 0, "max with NaN");
  }
}

TEST(GenericKernels, ArgmaxTakesTheFirstMaximum) {
  for (const Rows& r : kRows) {
    OpKey key("argmax");
    key.in({r.outer, r.reduce, r.inner}).out({r.outer, r.inner}, NETCL_I32);
    rows_facts(key, r);
    auto x = uniform(size(r.outer * r.reduce * r.inner));
    for (float& v : x) v = std::round(v * 8);  // many equal values
    std::vector<int32_t> want;
    columns(x, r, [&](const std::vector<double>& c) {
      want.push_back(static_cast<int32_t>(std::max_element(c.begin(), c.end()) - c.begin()));
    });
    for (const std::string& variant : g_runner->variants(key)) {
      EXPECT_EQ(from_bytes<int32_t>(g_runner->run(key, {to_bytes(x)}, variant)[0]), want)
          << variant << " over " << r.reduce;
    }
  }
}

TEST(GenericKernels, SoftmaxAndGradients) {
  for (const bool log : {false, true}) {
    for (const Rows& r : kRows) {
      const size_t n = size(r.outer * r.reduce * r.inner);
      const std::string op = log ? "log_softmax" : "softmax";
      OpKey key(op), grad(op + "_grad");
      key.in({r.outer, r.reduce, r.inner}).out({r.outer, r.reduce, r.inner});
      grad.in({r.outer, r.reduce, r.inner}).in({r.outer, r.reduce, r.inner});
      grad.out({r.outer, r.reduce, r.inner});
      rows_facts(key, r);
      rows_facts(grad, r);
      auto x = uniform(n, 1);
      for (float& v : x) v = v * 20 + 100;  // exp of it alone would overflow
      const auto dy = uniform(n, 2);
      std::vector<double> y(n), dx(n);
      for (int64_t i = 0; i < r.outer * r.inner; ++i) {
        const auto at = [&](int64_t k) {
          return size((i / r.inner * r.reduce + k) * r.inner + i % r.inner);
        };
        double top = -kInf, sum = 0, dot = 0;
        for (int64_t k = 0; k < r.reduce; ++k) top = std::max(top, double{x[at(k)]});
        for (int64_t k = 0; k < r.reduce; ++k) sum += std::exp(x[at(k)] - top);
        for (int64_t k = 0; k < r.reduce; ++k) {
          const double p = std::exp(x[at(k)] - top) / sum;
          y[at(k)] = log ? x[at(k)] - top - std::log(sum) : p;
          dot += dy[at(k)] * (log ? 1 : p);
        }
        for (int64_t k = 0; k < r.reduce; ++k) {
          dx[at(k)] = log ? dy[at(k)] - std::exp(y[at(k)]) * dot : y[at(k)] * (dy[at(k)] - dot);
        }
      }
      check(key, {to_bytes(x)}, y, 2e-5, op);
      const std::vector<float> y_float(y.begin(), y.end());
      check(grad, {to_bytes(dy), to_bytes(y_float)}, dx, 5e-5, op + "_grad");
    }
  }
}

TEST(GenericKernels, CrossEntropyAndGradient) {
  for (const int64_t classes : {1, 10, 301}) {
    constexpr int64_t kN = 5;
    const std::vector<int32_t> labels = {0, static_cast<int32_t>(classes - 1), -100, -1,
                                         static_cast<int32_t>(classes)};
    auto x = uniform(size(kN * classes));
    for (float& v : x) v *= 200;
    const auto dloss = uniform(kN, 2);
    std::vector<double> loss(kN), grad(x.size());
    for (size_t i = 0; i < kN; ++i) {
      const float* row = &x[i * size(classes)];
      const double top = *std::max_element(row, row + classes);
      double sum = 0;
      for (int64_t c = 0; c < classes; ++c) sum += std::exp(row[c] - top);
      const bool ignored = labels[i] == -100;
      const bool wrong = !ignored && (labels[i] < 0 || labels[i] >= classes);
      loss[i] = ignored ? 0 : wrong ? kNan : std::log(sum) + top - row[labels[i]];
      for (int64_t c = 0; c < classes; ++c) {
        const double p = std::exp(row[c] - top) / sum - (c == labels[i]);
        grad[i * size(classes) + size(c)] = ignored ? 0 : wrong ? kNan : p * dloss[i];
      }
    }
    OpKey key("cross_entropy"), back("cross_entropy_grad");
    key.in({kN, classes}).in({kN}, NETCL_I32).out({kN}).out({kN});
    back.in({kN, classes}).in({kN}, NETCL_I32).in({kN}).out({kN, classes});
    key.integer("ignore_index", -100).integer("N", kN).integer("C", classes);
    key.number("label_smoothing", 0).integer("has_weights", 0);
    back.integer("ignore_index", -100).integer("N", kN).integer("C", classes);
    back.number("label_smoothing", 0).integer("has_weights", 0);
    check(key, {to_bytes(x), to_bytes(labels)}, loss, 1e-5, "cross_entropy");
    check(back, {to_bytes(x), to_bytes(labels), to_bytes(dloss)}, grad, 1e-5, "cross_entropy_grad");
    for (const std::string& variant : g_runner->variants(key)) {
      EXPECT_EQ(from_bytes<float>(g_runner->run(key, {to_bytes(x), to_bytes(labels)}, variant)[1]),
                (std::vector<float>{1, 1, 0, 1, 1}));
    }
  }
}

struct Words {
  uint32_t w[4];
};
Words philox(Words c, uint32_t k0, uint32_t k1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c.w[0], p1 = uint64_t{0xCD9E8D57u} * c.w[2];
    c = {{static_cast<uint32_t>(p1 >> 32) ^ c.w[1] ^ k0, static_cast<uint32_t>(p1),
          static_cast<uint32_t>(p0 >> 32) ^ c.w[3] ^ k1, static_cast<uint32_t>(p0)}};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

TEST(GenericKernels, HostPhiloxMatchesThePublishedVectors) {
  const Words zeros = philox({{0, 0, 0, 0}}, 0, 0);
  const uint32_t want[] = {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u};
  EXPECT_EQ(std::memcmp(zeros.w, want, sizeof(want)), 0);
}

TEST(GenericKernels, DropoutDrawsThePositionInTheGlobalBatch) {
  struct Case {
    int64_t rows, row;
    int32_t first;
  };
  for (const Case& c :
       {Case{7, 13, 0}, Case{7, 13, 3}, Case{1, 1, 1}, Case{3, 50000, 2000000000}}) {
    const int64_t n = c.rows * c.row;
    OpKey key("dropout");
    key.in({c.rows, c.row}).in({8}, NETCL_I32).out({c.rows, c.row});
    key.number("p", 0.25).integer("stream", 9).integer("n", n).integer("row", c.row);
    const std::vector<int32_t> state = {-5, 77, 12, c.first, 0, 0, 0, 0};
    const auto x = uniform(size(n));
    std::vector<double> want;
    size_t kept = 0;
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t e = uint64_t{static_cast<uint32_t>(c.first)} * size(c.row) + size(i);
      const Words words =
          philox({{static_cast<uint32_t>(e / 4), static_cast<uint32_t>(e / 4 >> 32), 12, 9}},
                 static_cast<uint32_t>(-5), 77);
      const bool keep = static_cast<double>(words.w[e % 4] >> 8) * 0x1p-24 >= 0.25;
      kept += keep;
      want.push_back(keep ? x[size(i)] / 0.75 : 0);
    }
    check(key, {to_bytes(x), to_bytes(state)}, want, 1e-6, "dropout");
    // Six standard deviations.
    if (n > 1000) {
      const auto count = static_cast<double>(n);
      EXPECT_NEAR(static_cast<double>(kept) / count, 0.75, 6 * 0.433 / std::sqrt(count));
    }
  }
}

TEST(GenericKernels, Full) {
  OpKey key("full");
  key.out({301}).integer("n", 301).number("value", -1.5);
  check(key, {}, std::vector<double>(301, -1.5), 0, "full");
}

}  // namespace

void set_runner(ClRunner* runner) { g_runner = runner; }

}  // namespace testing
}  // namespace netcl

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 2) {
    std::fprintf(stderr, "usage: generic_kernels_test PLUGIN_DIR\n");
    return 2;
  }
  // The build sandbox has no home directory; compiled kernels go with the test's other files.
  setenv("POCL_CACHE_DIR", ::testing::TempDir().c_str(), 0);
  try {
    netcl::testing::ClRunner runner(argv[1]);
    netcl::testing::set_runner(&runner);
    return RUN_ALL_TESTS();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "generic_kernels_test: %s\n", e.what());
    return 1;
  }
}
