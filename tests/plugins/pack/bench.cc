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

<<<<<<< HEAD
=======
// A square convolution of stride 1 and its two gradients.
void time_conv(ClRunner& runner, int64_t n, int64_t c, int64_t size, int64_t o, int64_t k,
               bool all) {
  const int64_t pad = k / 2;
  const std::vector<int64_t> x = {n, c, size, size}, w = {o, c, k, k}, y = {n, o, size, size};
  for (const std::string op : {"conv2d", "conv2d_grad_input", "conv2d_grad_weight"}) {
    OpKey key(op);
    key.in(op == "conv2d_grad_input" ? y : x).in(op == "conv2d_grad_weight" ? y : w);
    key.out(op == "conv2d" ? y : op == "conv2d_grad_input" ? x : w);
    key.integer("N", n).integer("C", c).integer("H", size).integer("W", size).integer("O", o);
    key.integer("OH", size).integer("OW", size).integer("KH", k).integer("KW", k);
    key.integer("SH", 1).integer("SW", 1).integer("has_bias", 0).integer("groups", 1);
    key.list("sizes8", {n, c, size, size, o, size, size, 1});
    key.list("window8", {k, k, 1, 1, pad, pad, 1, 1});
    const auto first = static_cast<size_t>(n * size * size * (op == "conv2d_grad_input" ? o : c));
    const auto second =
        static_cast<size_t>(op == "conv2d_grad_weight" ? n * size * size * o : o * c * k * k);
    for (const std::string& variant : chosen(runner, key, all)) {
      double seconds = 0;
      runner.run(key, {values(first), values(second)}, variant, 5, &seconds);
      std::printf("%s [%lld,%lld,%lld,%lld] to %lld, kernel %lld, %s: %.2f ms, %.1f GFLOP/s\n",
                  op.c_str(), static_cast<long long>(n), static_cast<long long>(c),
                  static_cast<long long>(size), static_cast<long long>(size),
                  static_cast<long long>(o), static_cast<long long>(k), variant.c_str(),
                  1e3 * seconds,
                  2e-9 * static_cast<double>(n * c * size * size * o * k * k) / seconds);
    }
  }
}

>>>>>>> helper-a
// Attention over sequences of `t` places: forward, and the two backward ops. FLOPs as of the whole
// matrix of scores: two products forward, three and four backward.
void time_attention(ClRunner& runner, int64_t heads, int64_t t, int64_t d, int64_t causal,
                    bool all) {
  const std::vector<int64_t> x = {1, heads, t, d}, rows = {1, heads, t};
  const auto n = static_cast<size_t>(heads * t);
  const Bytes tensor = values(n * static_cast<size_t>(d));
  const Bytes lse = to_bytes(std::vector<float>(n, 5)), delta = to_bytes(std::vector<float>(n));
  for (const char* op : {"scaled_dot_product_attention", "sdpa_grad_q", "sdpa_grad_kv"}) {
    const bool forward = op[1] == 'c', keys = std::string(op) == "sdpa_grad_kv";
    OpKey key(op);
    key.in(x).in(x).in(x).out(x);
    std::vector<Bytes> in = {tensor, tensor, tensor};
    if (forward) key.out(rows);
    if (keys) key.out(x);
    if (!forward) {
      key.in(x).in(rows).in(rows);
      in.insert(in.end(), {tensor, lse, delta});
    }
    key.integer("heads", heads).integer("H", heads).integer("T", t).integer("S", t).integer("D", d);
    key.integer("causal", causal).integer("has_mask", 0).text("mask_dtype", "f32");
    key.number("factor", 0.125).list("mask_strides", std::vector<int64_t>(8, 0));
    const double products = forward ? 2 : keys ? 4 : 3;
    for (const std::string& variant : chosen(runner, key, all)) {
      double seconds = 0;
      runner.run(key, in, variant, 5, &seconds);
      std::printf("%s heads=%lld T=%lld D=%lld causal=%d %s: %.3f ms, %.1f GFLOP/s\n", op,
                  static_cast<long long>(heads), static_cast<long long>(t),
                  static_cast<long long>(d), static_cast<int>(causal), variant.c_str(),
                  1e3 * seconds,
                  2e-9 * products * static_cast<double>(heads * t * t * d) / seconds);
    }
  }
}

// `count` tokens of a vocabulary, and the sum of their rows' gradients.
void time_embedding(ClRunner& runner, int64_t vocabulary, int64_t count, int64_t features,
                    bool all) {
  std::vector<int32_t> index(static_cast<size_t>(count));
  for (size_t i = 0; i < index.size(); ++i) {
    index[i] = static_cast<int32_t>(i * 7919 % static_cast<size_t>(vocabulary));
  }
  for (const bool gradient : {false, true}) {
    OpKey key(gradient ? "embedding_grad" : "embedding");
    const std::vector<int64_t> table = {vocabulary, features}, rows = {count, features};
    key.in({count}, NETCL_I32).in(gradient ? rows : table).out(gradient ? table : rows);
    key.integer("outer", 1).integer("rows", vocabulary).integer("count", count);
    key.integer("inner", features);
    const Bytes x = values(static_cast<size_t>((gradient ? count : vocabulary) * features));
    for (const std::string& variant : chosen(runner, key, all)) {
      double seconds = 0;
      runner.run(key, {to_bytes(index), x}, variant, 5, &seconds);
      std::printf("%s V=%lld tokens=%lld D=%lld %s: %.3f ms\n",
                  gradient ? "embedding_grad" : "embedding", static_cast<long long>(vocabulary),
                  static_cast<long long>(count), static_cast<long long>(features), variant.c_str(),
                  1e3 * seconds);
<<<<<<< HEAD
    }
  }
}

// A square convolution of stride 1 and its two gradients.
void time_conv(ClRunner& runner, int64_t n, int64_t c, int64_t size, int64_t o, int64_t k,
               bool all) {
  const int64_t pad = k / 2;
  const std::vector<int64_t> x = {n, c, size, size}, w = {o, c, k, k}, y = {n, o, size, size};
  for (const std::string op : {"conv2d", "conv2d_grad_input", "conv2d_grad_weight"}) {
    OpKey key(op);
    key.in(op == "conv2d_grad_input" ? y : x).in(op == "conv2d_grad_weight" ? y : w);
    key.out(op == "conv2d" ? y : op == "conv2d_grad_input" ? x : w);
    key.integer("N", n).integer("C", c).integer("H", size).integer("W", size).integer("O", o);
    key.integer("OH", size).integer("OW", size).integer("KH", k).integer("KW", k);
    key.integer("SH", 1).integer("SW", 1).integer("has_bias", 0).integer("groups", 1);
    key.list("sizes8", {n, c, size, size, o, size, size, 1});
    key.list("window8", {k, k, 1, 1, pad, pad, 1, 1});
    const auto first = static_cast<size_t>(n * size * size * (op == "conv2d_grad_input" ? o : c));
    const auto second =
        static_cast<size_t>(op == "conv2d_grad_weight" ? n * size * size * o : o * c * k * k);
    for (const std::string& variant : chosen(runner, key, all)) {
      double seconds = 0;
      runner.run(key, {values(first), values(second)}, variant, 5, &seconds);
      std::printf("%s [%lld,%lld,%lld,%lld] to %lld, kernel %lld, %s: %.2f ms, %.1f GFLOP/s\n",
                  op.c_str(), static_cast<long long>(n), static_cast<long long>(c),
                  static_cast<long long>(size), static_cast<long long>(size),
                  static_cast<long long>(o), static_cast<long long>(k), variant.c_str(),
                  1e3 * seconds,
                  2e-9 * static_cast<double>(n * c * size * size * o * k * k) / seconds);
=======
>>>>>>> helper-a
    }
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
  time_conv(runner, 128, 1, 28, 6, 5, all);
  time_conv(runner, 128, 6, 14, 16, 5, all);
  time_conv(runner, 16, 64, 32, 64, 3, all);
  time_conv(runner, 16, 256, 8, 256, 3, all);
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
  for (const int64_t causal : {0, 1}) time_attention(runner, 16, 256, 64, causal, all);
  time_attention(runner, 128, 128, 32, 1, all);
  time_embedding(runner, 64, 4096, 128, all);
  time_embedding(runner, 5000, 4096, 128, all);
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
