#include "core/ops/conv.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/ops/checks.h"

namespace netcl {

namespace {

// w must be [filters, per_group, KH, KW]; `whole` channels are split over the groups.
void check_groups(const OpCall& call, int64_t whole, const char* what) {
  const int64_t groups = call.attrs.integer("groups");
  NETCL_CHECK(groups >= 1 && whole % groups == 0, ErrorCode::kUsage, "groups=", groups,
              " does not divide the ", whole, " ", what, " channels");
}

void check_weight(const OpCall& call) {
  require_image(call, 0);
  require_rank(call, 1, 4, "[out channels, in channels / groups, KH, KW]");
  for (size_t d = 0; d < 4; ++d) {
    NETCL_CHECK(call.in[1].shape[d] >= 1, ErrorCode::kUsage, "the weight ", call.in[1].shape.str(),
                " must have fixed dimensions of at least 1");
  }
  common_float(call, {0, 1});
}

void check_bias(const OpCall& call, int64_t channels) {
  if (call.in.size() < 3) return;
  const TensorDesc& bias = call.in[2];
  NETCL_CHECK((bias.shape == Shape{channels}) &&
                  (bias.dtype == DType::kF32 || bias.dtype == call.in[0].dtype),
              ErrorCode::kUsage, "the bias must be f32 or ", dtype_name(call.in[0].dtype), " ",
              Shape{channels}.str(), ", is ", bias.str());
}

// Sets oh and ow from the input's size.
void slide_over_input(ConvSizes& s) {
  const Shape image{s.n, s.c, s.h, s.w};
  require_fit(s.height, s.width, image);
  s.oh = s.height.positions(s.h);
  s.ow = s.width.positions(s.w);
}

// Calls visit(x index, w index, y index) for every product of the convolution.
template <typename Visit>
void for_each_product(const ConvSizes& s, Visit&& visit) {
  const int64_t per_group = s.c / s.groups, filters = s.o / s.groups;
  const int64_t kh = s.height.kernel, kw = s.width.kernel;
  for (int64_t row = 0; row < s.n * s.o * s.oh; ++row) {
    const int64_t o = row / s.oh % s.o, n = row / s.oh / s.o;
    const int64_t top = s.height.begin(row % s.oh);
    const int64_t first = n * s.c + o / filters * per_group;
    for (int64_t k = 0; k < per_group * kh; ++k) {
      const int64_t y = top + k % kh * s.height.dilation;
      if (y < 0 || y >= s.h) continue;
      const int64_t x_row = ((first + k / kh) * s.h + y) * s.w;
      const int64_t w_row = (o * per_group * kh + k) * kw;
      for (int64_t p = 0; p < s.ow; ++p) {
        for (int64_t j = 0; j < kw; ++j) {
          const int64_t x = s.width.begin(p) + j * s.width.dilation;
          if (x >= 0 && x < s.w) visit(x_row + x, w_row + j, row * s.ow + p);
        }
      }
    }
  }
}

}  // namespace

ConvSizes conv_window(const Attrs& attrs, int64_t kernel_h, int64_t kernel_w) {
  const Pair stride = pair_of(attrs, "stride", 1), dilation = pair_of(attrs, "dilation", 1);
  const Pair padding = pair_of(attrs, "padding", 0, {0, 0});
  ConvSizes s;
  s.groups = attrs.integer("groups");
  s.height = {kernel_h, stride[0], padding[0], dilation[0]};
  s.width = {kernel_w, stride[1], padding[1], dilation[1]};
  return s;
}

ConvSizes conv_sizes(const OpCall& call) {
  check_weight(call);
  const Shape &x = call.in[0].shape, &w = call.in[1].shape;
  check_groups(call, x[1], "input");
  check_groups(call, w[0], "output");
  ConvSizes s = conv_window(call.attrs, w[2], w[3]);
  NETCL_CHECK(w[1] * s.groups == x[1], ErrorCode::kUsage, "x ", x.str(), " has ", x[1],
              " channels, the weight ", w.str(), " with groups=", s.groups, " takes ",
              w[1] * s.groups);
  check_bias(call, w[0]);
  s.n = x[0], s.c = x[1], s.h = x[2], s.w = x[3], s.o = w[0];
  slide_over_input(s);
  return s;
}

ConvSizes conv_grad_input_sizes(const OpCall& call) {
  check_weight(call);
  const Shape &dy = call.in[0].shape, &w = call.in[1].shape;
  check_groups(call, w[0], "output");
  const Pair input = pair_of(call.attrs, "input", 1);
  ConvSizes s = conv_window(call.attrs, w[2], w[3]);
  s.n = dy[0], s.c = w[1] * s.groups, s.h = input[0], s.w = input[1], s.o = w[0];
  slide_over_input(s);
  NETCL_CHECK((dy == Shape{s.n, s.o, s.oh, s.ow}), ErrorCode::kUsage, "dy must be ",
              (Shape{s.n, s.o, s.oh, s.ow}.str()), ", is ", dy.str());
  return s;
}

ConvSizes conv_grad_weight_sizes(const OpCall& call) {
  require_image(call, 0);
  require_image(call, 1);
  common_float(call);
  const Shape &x = call.in[0].shape, &dy = call.in[1].shape;
  check_groups(call, x[1], "input");
  check_groups(call, dy[1], "output");
  const Pair kernel = pair_of(call.attrs, "kernel", 1);
  ConvSizes s = conv_window(call.attrs, kernel[0], kernel[1]);
  s.n = x[0], s.c = x[1], s.h = x[2], s.w = x[3], s.o = dy[1];
  slide_over_input(s);
  NETCL_CHECK((dy == Shape{s.n, s.o, s.oh, s.ow}), ErrorCode::kUsage, "dy must be ",
              (Shape{s.n, s.o, s.oh, s.ow}.str()), ", is ", dy.str());
  return s;
}

ConvSizes conv_transpose_sizes(const OpCall& call) {
  check_weight(call);
  const Shape &x = call.in[0].shape, &w = call.in[1].shape;
  check_groups(call, x[1], "input");
  NETCL_CHECK(w[0] == x[1], ErrorCode::kUsage, "x ", x.str(), " has ", x[1],
              " channels, the weight ", w.str(), " takes ", w[0]);
  ConvSizes s = conv_window(call.attrs, w[2], w[3]);
  const Pair extra = pair_of(call.attrs, "output_padding", 0, {0, 0});
  NETCL_CHECK(extra[0] < s.height.stride && extra[1] < s.width.stride, ErrorCode::kUsage,
              "output_padding ", (Shape{extra[0], extra[1]}.str()),
              " must be smaller than the stride ", (Shape{s.height.stride, s.width.stride}.str()));
  s.n = x[0], s.c = w[1] * s.groups, s.o = x[1], s.oh = x[2], s.ow = x[3];
  s.h = (s.oh - 1) * s.height.stride - 2 * s.height.padding + s.height.extent() + extra[0];
  s.w = (s.ow - 1) * s.width.stride - 2 * s.width.padding + s.width.extent() + extra[1];
  NETCL_CHECK(s.h >= 1 && s.w >= 1, ErrorCode::kUsage, "the output of input ", x.str(),
              " and weight ", w.str(), " would be ", s.h, " x ", s.w, "; use less padding");
  check_bias(call, s.c);
  return s;
}

void conv_facts(const ConvSizes& s, bool has_bias, Attrs& facts) {
  const std::vector<std::pair<const char*, int64_t>> items = {{"N", s.n},
                                                              {"C", s.c},
                                                              {"H", s.h},
                                                              {"W", s.w},
                                                              {"O", s.o},
                                                              {"OH", s.oh},
                                                              {"OW", s.ow},
                                                              {"KH", s.height.kernel},
                                                              {"KW", s.width.kernel},
                                                              {"SH", s.height.stride},
                                                              {"SW", s.width.stride},
                                                              {"PH", s.height.padding},
                                                              {"PW", s.width.padding},
                                                              {"DH", s.height.dilation},
                                                              {"DW", s.width.dilation},
                                                              {"has_bias", has_bias ? 1 : 0}};
  for (const auto& [key, value] : items) facts.set(key, value);
  facts.set("sizes8", std::vector<int64_t>{s.n, s.c, s.h, s.w, s.o, s.oh, s.ow, s.groups});
  facts.set("window8", std::vector<int64_t>{s.height.kernel, s.width.kernel, s.height.stride,
                                            s.width.stride, s.height.padding, s.width.padding,
                                            s.height.dilation, s.width.dilation});
}

void conv_forward(const ConvSizes& s, const double* x, const double* w, double* y) {
  for_each_product(s, [=](int64_t i, int64_t k, int64_t j) { y[j] += x[i] * w[k]; });
}

void conv_backward_input(const ConvSizes& s, const double* dy, const double* w, double* dx) {
  for_each_product(s, [=](int64_t i, int64_t k, int64_t j) { dx[i] += dy[j] * w[k]; });
}

void conv_backward_weight(const ConvSizes& s, const double* x, const double* dy, double* dw) {
  for_each_product(s, [=](int64_t i, int64_t k, int64_t j) { dw[k] += x[i] * dy[j]; });
}

}  // namespace netcl
