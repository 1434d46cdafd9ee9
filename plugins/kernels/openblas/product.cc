#include "plugins/kernels/openblas/product.h"

#include <algorithm>

namespace netcl::openblas {

namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// y += bias, then max(y, 0), where they are wanted. NaN stays.
void finish(float* y, int64_t n, const float* bias, bool relu) {
  if (bias != nullptr) {
    for (int64_t j = 0; j < n; ++j) y[j] += bias[j];
  }
  if (relu) {
    for (int64_t j = 0; j < n; ++j) y[j] = y[j] < 0.0f ? 0.0f : y[j];
  }
}

}  // namespace

size_t Product::num_pieces() const {
  return static_cast<size_t>(batch * ceil_div(m, rows) * ceil_div(n, columns));
}

void Product::compute(size_t piece, const Library& library, const float* a, const float* b,
                      const float* bias, float* y) const {
  const int64_t across = ceil_div(n, columns), down = ceil_div(m, rows);
  const auto at = static_cast<int64_t>(piece);
  const int64_t j = at % across * columns, i = at / across % down * rows, z = at / (across * down);
  Matrices block{};
  block.m = std::min(rows, m - i);
  block.n = std::min(columns, n - j);
  block.k = k;
  block.a_row = a_transposed ? m : k;
  block.b_row = b_transposed ? k : n;
  block.y_row = n;
  block.a_transposed = a_transposed;
  block.b_transposed = b_transposed;
  block.a = a + z * a_batch + (a_transposed ? i : i * k);
  block.b = b + z * b_batch + (b_transposed ? j * k : j);
  block.y = y + (z * m + i) * n + j;
  if (k > 0) library.multiply(block);
  for (int64_t row = 0; row < block.m; ++row) {
    float* line = block.y + row * n;
    if (k == 0) std::fill_n(line, block.n, 0.0f);
    finish(line, block.n, bias == nullptr ? nullptr : bias + j, relu);
  }
}

}  // namespace netcl::openblas
