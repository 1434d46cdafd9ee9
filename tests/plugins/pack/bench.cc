// Times the generic kernels on the first OpenCL device: bench PLUGIN_DIR [all]. Without
// "all", only the variant that each op would be given. For people, not for CI.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "tests/plugins/pack/cl_runner.h"

namespace netcl {
namespace testing {
namespace {

Bytes values(size_t n) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<float>(i % 97) * 0.01f - 0.5f;
  return to_bytes(out);
}

std::vector<std::string> chosen(ClRunner& runner, const OpKey& key, bool all) {
  std::vector<std::string> variants = runner.variants(key);
  if (!all && variants.size() > 1) variants.resize(1);
  return variants;
}

void time_matmul(ClRunner& runner, int64_t m, int64_t n, int64_t k, int ta, int tb, bool all) {
  OpKey key("matmul");
  key.in(ta ? std::vector<int64_t>{k, m} : std::vector<int64_t>{m, k})
      .in(tb ? std::vector<int64_t>{n, k} : std::vector<int64_t>{k, n})
      .out({m, n})
      .integer("M", m)
      .integer("N", n)
      .integer("K", k)
      .integer("has_bias", 0)
      .integer("batch", 1)
      .integer("a_batch", 0)
      .integer("b_batch", 0)
      .integer("transpose_a", ta)
      .integer("transpose_b", tb)
      .text("activation", "none");
  for (const std::string& variant : chosen(runner, key, all)) {
    double seconds = 0;
    runner.run(key, {values(static_cast<size_t>(m * k)), values(static_cast<size_t>(k * n))},
               variant, 20, &seconds);
    std::printf("matmul %lldx%lldx%lld ta=%d tb=%d %s: %.1f GFLOP/s\n", static_cast<long long>(m),
                static_cast<long long>(n), static_cast<long long>(k), ta, tb, variant.c_str(),
                2e-9 * static_cast<double>(m * n * k) / seconds);
  }
}

void time_elementwise(ClRunner& runner, const char* expr) {
  constexpr int64_t kN = 1 << 22;
  OpKey key("op", "elementwise");
  key.in({kN}).in({kN}).out({kN}).integer("n", kN).text("mode", "dense").text("ctype", "float");
  key.text("expr", expr).number("p0", 0.5).number("p1", 2);
  double seconds = 0;
  runner.run(key, {values(kN), values(kN)}, "", 10, &seconds);
  std::printf("elementwise %s: %.2f GB/s\n", expr, 12e-9 * static_cast<double>(kN) / seconds);
}

void time_rows(ClRunner& runner, const char* op, int64_t outer, int64_t reduce, int64_t inner,
               bool all) {
  OpKey key(op);
  const bool same = std::string(op) == "softmax";
  key.in({outer, reduce, inner});
  key.out(same ? std::vector<int64_t>{outer, reduce, inner} : std::vector<int64_t>{outer, inner});
  key.integer("outer", outer).integer("reduce", reduce).integer("inner", inner);
  for (const std::string& variant : chosen(runner, key, all)) {
    double seconds = 0;
    const auto n = static_cast<size_t>(outer * reduce * inner);
    runner.run(key, {values(n)}, variant, 10, &seconds);
    std::printf("%s [%lld,%lld,%lld] %s: %.2f Gelement/s\n", op, static_cast<long long>(outer),
                static_cast<long long>(reduce), static_cast<long long>(inner), variant.c_str(),
                1e-9 * static_cast<double>(n) / seconds);
  }
}

int run(int argc, char** argv) {
  const bool all = argc == 3 && std::string(argv[2]) == "all";
  if (argc != 2 && !all) {
    std::fprintf(stderr, "usage: bench PLUGIN_DIR [all]\n");
    return 2;
  }
  ClRunner runner(argv[1]);
  std::printf("%s\n", runner.device_name().c_str());
  for (int form = 0; form < 4; ++form) time_matmul(runner, 512, 512, 512, form & 1, form >> 1, all);
  time_matmul(runner, 128, 256, 784, 0, 0, all);
  time_matmul(runner, 784, 256, 128, 1, 0, all);
  time_matmul(runner, 128, 10, 256, 0, 0, all);
  time_matmul(runner, 2048, 2048, 2048, 0, 0, all);
  for (const char* expr : {"x0 + x1", "tanh(x0) * x1", "x0 > 0 ? x0 : x1"}) {
    time_elementwise(runner, expr);
  }
  for (const char* op : {"sum", "max_reduce", "softmax"}) {
    time_rows(runner, op, 4096, 1024, 1, all);
    time_rows(runner, op, 1, 1024, 4096, all);
  }
  return 0;
}

}  // namespace
}  // namespace testing
}  // namespace netcl

int main(int argc, char** argv) {
  try {
    return netcl::testing::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench: %s\n", e.what());
    return 1;
  }
}
