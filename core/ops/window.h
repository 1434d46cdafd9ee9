// Geometry that convolutions and pools share: windows sliding over the last two dimensions of
// [N,C,H,W], of which only N may depend on the batch. Threads: any (pure functions).
#ifndef NETCL_CORE_OPS_WINDOW_H_
#define NETCL_CORE_OPS_WINDOW_H_

#include <array>
#include <string>
#include <vector>

#include "core/ops/op.h"

namespace netcl {

using Pair = std::array<int64_t, 2>;  // height, width

// A list attribute of two integers, of one that stands for both, or empty (then `absent`).
// Errors: kUsage for another length or a value below `low`.
Pair pair_of(const Attrs& attrs, const char* key, int64_t low, const Pair& absent = {1, 1});

// How a window moves along one dimension.
struct Slide {
  int64_t kernel, stride, padding, dilation;

  int64_t extent() const { return dilation * (kernel - 1) + 1; }
  // Number of positions along `size` elements; with `ceil` a last window may hang over the end if
  // it begins inside of the input or of the padding before it. 0 or less: it does not fit.
  int64_t positions(int64_t size, bool ceil = false) const;
  // Where position `p` begins: negative inside of the padding.
  int64_t begin(int64_t p) const { return p * stride - padding; }
};

// Fails unless input `i` is [N,C,H,W] with C, H and W concrete and at least 1.
void require_image(const OpCall& call, size_t i);

// Fails, naming both sizes, unless the window fits into the padded input of shape `image`.
void require_fit(const Slide& height, const Slide& width, const Shape& image);

}  // namespace netcl

#endif  // NETCL_CORE_OPS_WINDOW_H_
