// Index walks for the double-precision references: plain and slow on purpose, so that they can be
// read and believed.
#ifndef NETCL_CORE_OPS_REFERENCE_ITERATE_H_
#define NETCL_CORE_OPS_REFERENCE_ITERATE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/tensor/shape.h"

namespace netcl {

// Calls f(element, offsets) for each element of `shape` in row-major order; offsets[i] is where the
// element lies in an array with strides[i] per dimension.
template <typename F>
void for_each_strided(const Shape& shape, const std::vector<std::vector<int64_t>>& strides, F f) {
  const int64_t n = shape.num_elements();
  std::vector<int64_t> offsets(strides.size());
  for (int64_t e = 0; e < n; ++e) {
    std::fill(offsets.begin(), offsets.end(), 0);
    int64_t rest = e;
    for (size_t d = shape.rank(); d-- > 0;) {
      const int64_t index = rest % shape[d];
      rest /= shape[d];
      for (size_t i = 0; i < strides.size(); ++i) offsets[i] += index * strides[i][d];
    }
    f(e, offsets);
  }
}

// A tensor seen as [outer, reduce, inner], reduced over the middle.
struct ReduceSpan {
  int64_t outer = 1, reduce = 1, inner = 1;
};

// Calls f(line, first, step) for each of the outer * inner lines: its elements lie at
// first + r * step for r in [0, reduce).
template <typename F>
void for_each_line(const ReduceSpan& span, F f) {
  for (int64_t o = 0; o < span.outer; ++o) {
    for (int64_t i = 0; i < span.inner; ++i) {
      f(static_cast<size_t>(o * span.inner + i),
        static_cast<size_t>(o * span.reduce * span.inner + i), static_cast<size_t>(span.inner));
    }
  }
}

}  // namespace netcl

#endif  // NETCL_CORE_OPS_REFERENCE_ITERATE_H_
