// Rows of conv2d, conv_transpose2d and the two backward ops that both are made of. Each of the four
// is linear in both of its inputs, so their gradients are one another.
#include <algorithm>

#include "core/ops/conv.h"
#include "core/ops/gradients.h"
#include "core/ops/reduce.h"
#include "core/ops/rows.h"

namespace netcl {

namespace {

using Ints = std::vector<int64_t>;
using SizesOf = ConvSizes (*)(const OpCall& call);
using Product = void (*)(const ConvSizes& s, const double* a, const double* b, double* y);

// The attributes that all four share, as the node has them.
Attrs window_of(const Node& node) {
  Attrs out;
  for (const char* key : {"stride", "padding", "dilation"}) out.set(key, node.attrs.integers(key));
  out.set("groups", node.attrs.integer("groups"));
  return out;
}

Attrs with_list(Attrs attrs, const char* key, const Shape& shape) {
  attrs.set(key, Ints{shape[2], shape[3]});
  return attrs;
}

// Summed in f32: half types would lose what they round in between.
ValueId bias_gradient(Recorder& r, ValueId dy) {
  if (r.desc(dy).dtype != DType::kF32) dy = r.call("cast", {dy}, {{"dtype", std::string("f32")}});
  return reduce(r, "sum", dy, {0, 2, 3}, false);
}

Grads conv_gradient(const GradCall& c) {
  Recorder& r = c.recorder;
  const ValueId x = c.node.in[0], w = c.node.in[1], dy = dy0(c);
  const Shape x_shape = c.in_desc(0).shape, w_shape = c.in_desc(1).shape;
  Grads out(c.node.in.size());
  const Attrs window = window_of(c.node);
  if (c.needed[0])
    out[0] = r.call("conv2d_grad_input", {dy, w}, with_list(window, "input", x_shape));
  if (c.needed[1])
    out[1] = r.call("conv2d_grad_weight", {x, dy}, with_list(window, "kernel", w_shape));
  if (out.size() == 3 && c.needed[2]) out[2] = bias_gradient(r, dy);
  return out;
}

// Of conv2d_grad_input and conv_transpose2d: dx = conv of dy, dw as if x were the output.
Grads transposed_gradient(const GradCall& c) {
  Recorder& r = c.recorder;
  const ValueId x = c.node.in[0], w = c.node.in[1], dy = dy0(c);
  const Shape w_shape = c.in_desc(1).shape;
  Grads out(c.node.in.size());
  const Attrs window = window_of(c.node);
  if (c.needed[0]) out[0] = r.call("conv2d", {dy, w}, window);
  if (c.needed[1])
    out[1] = r.call("conv2d_grad_weight", {dy, x}, with_list(window, "kernel", w_shape));
  if (out.size() == 3 && c.needed[2]) out[2] = bias_gradient(r, dy);
  return out;
}

Grads weight_gradient(const GradCall& c) {
  Recorder& r = c.recorder;
  const ValueId x = c.node.in[0], dy = c.node.in[1], dw = dy0(c);
  const Shape x_shape = c.in_desc(0).shape;
  Grads out(2);
  const Attrs window = window_of(c.node);
  if (c.needed[0])
    out[0] = r.call("conv2d_grad_input", {dy, dw}, with_list(window, "input", x_shape));
  if (c.needed[1]) out[1] = r.call("conv2d", {x, dw}, window);
  return out;
}

OpRow conv_row(const std::string& name, SizesOf sizes_of, Product product) {
  OpRow row;
  row.name = name;
  row.min_in = row.max_in = 2;
  row.half_storage = true;
  row.autocast = Autocast::kLow;
  row.attrs = {{"stride", Ints{1, 1}},
               {"padding", Ints{0, 0}},
               {"dilation", Ints{1, 1}},
               {"groups", int64_t{1}}};
  row.facts = [sizes_of](const OpCall& call, Attrs& facts) {
    conv_facts(sizes_of(call), call.in.size() == 3, facts);
  };
  row.reference = [sizes_of, product](const OpCall& call, const std::vector<const HostTensor*>& in,
                                      std::vector<HostTensor>& out) {
    std::vector<double>& y = out[0].data;
    std::fill(y.begin(), y.end(), 0);
    product(sizes_of(call), in[0]->data.data(), in[1]->data.data(), y.data());
    if (in.size() < 3 || y.empty()) return;
    const auto channels = static_cast<size_t>(out[0].desc.shape[1]);
    const auto plane = static_cast<size_t>(out[0].desc.shape[2] * out[0].desc.shape[3]);
    for (size_t i = 0; i < y.size(); ++i) y[i] += in[2]->data[i / plane % channels];
  };
  return row;
}

struct Case {
  Shape x;
  int64_t filters;
  Ints kernel, stride, padding, dilation;
  int64_t groups;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      {{1, 1, 1, 1}, 1, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},
      {{2, 3, 7, 5}, 4, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
      {{0, 2, 5, 5}, 3, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
      {{3, 4, 9, 11}, 6, {3, 2}, {2, 3}, {2, 0}, {1, 2}, 2},
      {{1, 5, 8, 8}, 5, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 5},
      {{2, 3, 6, 7}, 6, {1, 3}, {1, 2}, {0, 2}, {3, 2}, 3},
      {{1, 17, 6, 6}, 37, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
      {{2, 6, 5, 5}, 9, {1, 1}, {2, 2}, {0, 0}, {1, 1}, 1},
      {{1, 1, 13, 19}, 7, {5, 5}, {1, 1}, {2, 2}, {1, 1}, 1},
      {{2, 2, 9, 8}, 3, {2, 3}, {4, 3}, {1, 2}, {2, 2}, 1},
      {{3, 16, 1, 1}, 18, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
      {{2, 17, 6, 32}, 19, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1},
      {{5, 32, 4, 8}, 16, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 2},
      {{2, 3, 11, 17}, 2, {3, 4}, {1, 1}, {2, 3}, {1, 1}, 1},
  };
  return list;
}

enum class Form { kForward, kGradInput, kGradWeight, kTransposed };

// The same convolutions in the form that the op takes.
std::vector<OpCase> cases_of(Form form) {
  std::vector<OpCase> out;
  for (const Case& k : cases()) {
    OpCase c;
    c.attrs = {{"stride", k.stride},
               {"padding", k.padding},
               {"dilation", k.dilation},
               {"groups", k.groups}};
    const ConvSizes s = conv_window(c.attrs, k.kernel[0], k.kernel[1]);
    const Shape w{k.filters, k.x[1] / k.groups, k.kernel[0], k.kernel[1]};
    const Shape y{k.x[0], k.filters, s.height.positions(k.x[2]), s.width.positions(k.x[3])};
    if (form == Form::kForward) c.in = {{DType::kF32, k.x}, {DType::kF32, w}};
    if (form == Form::kGradWeight) {
      c.in = {{DType::kF32, k.x}, {DType::kF32, y}};
      c.attrs.set("kernel", k.kernel);
    }
    if (form == Form::kGradInput || form == Form::kTransposed)
      c.in = {{DType::kF32, y}, {DType::kF32, w}};
    if (form == Form::kGradInput) c.attrs.set("input", Ints{k.x[2], k.x[3]});
    if (form == Form::kTransposed) {
      const int64_t h = (y[2] - 1) * k.stride[0] - 2 * k.padding[0] + s.height.extent();
      const int64_t wide = (y[3] - 1) * k.stride[1] - 2 * k.padding[1] + s.width.extent();
      c.attrs.set("output_padding", Ints{k.x[2] - h, k.x[3] - wide});
    }
    const bool with_bias = form == Form::kForward || form == Form::kTransposed;
    if (with_bias && out.size() % 2 == 1)
      c.in.push_back({DType::kF32, {form == Form::kForward ? k.filters : k.x[1]}});
    out.push_back(std::move(c));
  }
  return out;
}

OpRow forward_row() {
  OpRow row = conv_row("conv2d", conv_sizes, conv_forward);
  row.max_in = 3;
  row.always_f32 = {2};
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    const ConvSizes s = conv_sizes(call);
    return {{call.in[0].dtype, {s.n, s.o, s.oh, s.ow}}};
  };
  row.gradient = conv_gradient;
  row.doc = {
      "y[n,o,i,j] = bias[o] + sum_{c,p,q} w[o,c,p,q] x[n, c + first channel of o's group, "
      "i stride - padding + p dilation, j stride - padding + q dilation], x being 0 outside",
      "dx = conv2d_grad_input(dy, w), dw = conv2d_grad_weight(x, dy), dbias = sum_{n,i,j} dy",
      "LeCun et al., Gradient-based learning applied to document recognition, 1998"};
  row.cases = cases_of(Form::kForward);
  return row;
}

OpRow grad_input_row() {
  OpRow row = conv_row("conv2d_grad_input", conv_grad_input_sizes, conv_backward_input);
  row.attrs.push_back({"input", std::nullopt});
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    const ConvSizes s = conv_grad_input_sizes(call);
    return {{call.in[0].dtype, {s.n, s.c, s.h, s.w}}};
  };
  row.gradient = transposed_gradient;
  row.doc = {"dx of conv2d: every dx element adds the products of the dy elements that saw it",
             "d dy = conv2d(g, w), dw = conv2d_grad_weight(g, dy)", ""};
  row.cases = cases_of(Form::kGradInput);
  return row;
}

OpRow grad_weight_row() {
  OpRow row = conv_row("conv2d_grad_weight", conv_grad_weight_sizes, conv_backward_weight);
  row.attrs.push_back({"kernel", std::nullopt});
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    const ConvSizes s = conv_grad_weight_sizes(call);
    return {{call.in[0].dtype, {s.o, s.c / s.groups, s.height.kernel, s.width.kernel}}};
  };
  row.gradient = weight_gradient;
  row.doc = {"dw of conv2d: sum over the batch and all positions of dy times what its window saw",
             "dx = conv2d_grad_input(dy, g), d dy = conv2d(x, g)", ""};
  row.cases = cases_of(Form::kGradWeight);
  return row;
}

OpRow transposed_row() {
  OpRow row = conv_row("conv_transpose2d", conv_transpose_sizes, conv_backward_input);
  row.max_in = 3;
  row.always_f32 = {2};
  row.attrs.push_back({"output_padding", Ints{0, 0}});
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    const ConvSizes s = conv_transpose_sizes(call);
    return {{call.in[0].dtype, {s.n, s.c, s.h, s.w}}};
  };
  row.gradient = transposed_gradient;
  row.doc = {
      "y = conv2d_grad_input(x, w) + bias: the transpose of the map conv2d with weight w "
      "[in channels, out channels / groups, KH, KW]",
      "dx = conv2d(dy, w), dw = conv2d_grad_weight(dy, x), dbias = sum_{n,i,j} dy",
      "Dumoulin and Visin, A guide to convolution arithmetic for deep learning, 2016"};
  row.cases = cases_of(Form::kTransposed);
  return row;
}

}  // namespace

void add_conv_rows(std::vector<OpRow>& rows) {
  rows.push_back(forward_row());
  rows.push_back(grad_input_row());
  rows.push_back(grad_weight_row());
  rows.push_back(transposed_row());
}

}  // namespace netcl
