#include "core/ops/window.h"

#include "core/base/error.h"
#include "core/ops/checks.h"

namespace netcl {

Pair pair_of(const Attrs& attrs, const char* key, int64_t low, const Pair& absent) {
  const std::vector<int64_t>& list = attrs.integers(key);
  if (list.empty()) return absent;
  NETCL_CHECK(list.size() <= 2, ErrorCode::kUsage, "attribute \"", key,
              "\" must hold one integer or two (height, width), holds ", list.size());
  for (const int64_t value : list) {
    constexpr int64_t kMost = (int64_t{1} << 24) - 1;
    NETCL_CHECK(value >= low && value <= kMost, ErrorCode::kUsage, "attribute \"", key,
                "\" must be from ", low, " to ", kMost, ", is ", value);
  }
  return {list.front(), list.back()};
}

int64_t Slide::positions(int64_t size, bool ceil) const {
  const int64_t room = size + 2 * padding - extent();
  if (room < 0) return 0;
  int64_t count = room / stride + 1;
  if (ceil && room % stride != 0 && count * stride < size + padding) ++count;
  return count;
}

void require_image(const OpCall& call, size_t i) {
  require_rank(call, i, 4, "[N,C,H,W]");
  const Shape& shape = call.in[i].shape;
  for (size_t d = 1; d < 4; ++d) {
    NETCL_CHECK(shape[d] >= 1, ErrorCode::kUsage, "input ", i, " is ", shape.str(),
                ": of [N,C,H,W] only N may depend on the batch, and C, H and W are at least 1");
  }
}

void require_fit(const Slide& height, const Slide& width, const Shape& image) {
  const Shape padded{image[2] + 2 * height.padding, image[3] + 2 * width.padding};
  NETCL_CHECK(height.extent() <= padded[0] && width.extent() <= padded[1], ErrorCode::kUsage,
              "the kernel ", Shape{height.extent(), width.extent()}.str(),
              height.dilation * width.dilation > 1 ? " (dilated)" : "",
              " is larger than the padded input ", padded.str(), " of input ", image.str(),
              "; use a smaller kernel or more padding");
}

}  // namespace netcl
