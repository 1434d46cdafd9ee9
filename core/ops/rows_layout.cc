// Rows that move elements without changing them: broadcast_to and permute (elementwise family, with
// strides), reshape (a view), and full (makes a constant).
#include <algorithm>

#include "core/base/error.h"
#include "core/ops/elementwise.h"
#include "core/ops/gradients.h"
#include "core/ops/reduce.h"
#include "core/ops/rows.h"

namespace netcl {

namespace {

double same(const double* x, const double*) { return x[0]; }

// A row of the elementwise family with the expression x0 and strides of its own.
OpRow strided_row(const std::string& name, const AttrRule& attr, const StrideRule& strides) {
  OpRow row;
  row.name = name;
  row.family = "elementwise";
  row.half_storage = true;
  row.expression = "x0";
  row.attrs = {attr};
  row.facts = [strides](const OpCall& call, Attrs& facts) {
    elementwise_facts(call, strides, facts);
  };
  row.reference = [strides](const OpCall& call, const std::vector<const HostTensor*>& in,
                            std::vector<HostTensor>& out) {
    elementwise_reference(call, strides, same, in, out);
  };
  return row;
}

OpRow broadcast_row() {
  OpRow row = strided_row("broadcast_to", {"shape", std::nullopt}, broadcast_strides);
  row.doc = {"x repeated along the axes of size 1 and along new leading axes",
             "dx = the sum of dy over those axes", ""};
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    const Shape& to = call.attrs.shape("shape");
    const Shape& from = call.in[0].shape;
    NETCL_CHECK(from.rank() <= to.rank() && broadcast_shapes(from, to, "input and target") == to,
                ErrorCode::kUsage, "shape ", from.str(), " does not stretch to ", to.str());
    return {{call.in[0].dtype, to}};
  };
  row.gradient = [](const GradCall& c) -> Grads {
    return {reduce_to(c.recorder, dy0(c), c.in_desc(0).shape)};
  };
  const std::vector<std::pair<Shape, Shape>> shapes = {{{1}, {1}},       {{}, {7}},
                                                       {{1}, {1031}},    {{17}, {13, 17}},
                                                       {{5, 1}, {5, 3}}, {{3, 1, 5}, {2, 3, 4, 5}},
                                                       {{1, 3}, {0, 3}}, {{7}, {7}}};
  for (const auto& [from, to] : shapes) {
    OpCase c;
    c.in = {{DType::kF32, from}};
    c.attrs = {{"shape", to}};
    row.cases.push_back(c);
  }
  OpCase integers;
  integers.in = {{DType::kI32, {3, 1}}};
  integers.attrs = {{"shape", Shape{3, 5}}};
  integers.int_high = {100};
  row.cases.push_back(integers);
  integers.in = {{DType::kU8, {5}}};
  row.cases.push_back(integers);
  return row;
}

std::vector<int64_t> permutation(const OpCall& call) {
  const std::vector<int64_t>& axes = call.attrs.integers("axes");
  const auto rank = static_cast<int64_t>(call.in[0].shape.rank());
  std::vector<bool> seen(static_cast<size_t>(rank));
  NETCL_CHECK(static_cast<int64_t>(axes.size()) == rank, ErrorCode::kUsage, "axes names ",
              axes.size(), " axes of ", rank);
  std::vector<int64_t> out;
  for (int64_t axis : axes) {
    NETCL_CHECK(axis >= -rank && axis < rank, ErrorCode::kUsage, "axis ", axis, " is out of range");
    if (axis < 0) axis += rank;
    NETCL_CHECK(!seen[static_cast<size_t>(axis)], ErrorCode::kUsage, "axis ", axis,
                " is named twice");
    seen[static_cast<size_t>(axis)] = true;
    out.push_back(axis);
  }
  return out;
}

std::vector<int64_t> permute_strides(const OpCall& call, const Shape& out, size_t) {
  const std::vector<int64_t> plain = broadcast_strides(call, call.in[0].shape, 0);
  const std::vector<int64_t> axes = permutation(call);
  std::vector<int64_t> strides(out.rank());
  for (size_t d = 0; d < strides.size(); ++d) strides[d] = plain[static_cast<size_t>(axes[d])];
  return strides;
}

OpRow permute_row() {
  OpRow row = strided_row("permute", {"axes", std::nullopt}, permute_strides);
  row.doc = {"axis d of y is axis axes[d] of x", "dx = permute(dy) by the inverse order", ""};
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    std::vector<int64_t> dims;
    for (const int64_t axis : permutation(call)) {
      dims.push_back(call.in[0].shape[static_cast<size_t>(axis)]);
    }
    return {{call.in[0].dtype, Shape(std::move(dims))}};
  };
  row.gradient = [](const GradCall& c) -> Grads {
    const std::vector<int64_t>& axes = c.node.attrs.integers("axes");
    const auto rank = static_cast<int64_t>(axes.size());
    std::vector<int64_t> inverse(axes.size());
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t axis = axes[static_cast<size_t>(d)];
      inverse[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = d;
    }
    return {c.recorder.call("permute", {dy0(c)}, {{"axes", inverse}})};
  };
  const std::vector<std::pair<Shape, std::vector<int64_t>>> shapes = {
      {{1}, {0}},
      {{}, {}},
      {{3, 5}, {1, 0}},
      {{13, 17}, {0, 1}},
      {{2, 3, 5}, {2, 0, 1}},
      {{2, 3, 4, 5}, {0, -1, 1, 2}},
      {{0, 3}, {1, 0}},
      {{7, 1, 3}, {1, 2, 0}},
      {{2, 1, 2, 3, 1, 2, 2, 2}, {7, 5, 3, 1, 0, 2, 4, 6}},
      {{31, 37}, {1, 0}}};
  for (const auto& [shape, axes] : shapes) {
    OpCase c;
    c.in = {{DType::kF32, shape}};
    c.attrs = {{"axes", axes}};
    row.cases.push_back(c);
  }
  OpCase integers;
  integers.in = {{DType::kI32, {3, 5}}};
  integers.attrs = {{"axes", std::vector<int64_t>{1, 0}}};
  integers.int_high = {100};
  row.cases.push_back(integers);
  integers.in = {{DType::kU8, {3, 5}}};
  row.cases.push_back(integers);
  return row;
}

// Number of elements as coefficient * batch^power.
struct Count {
  int64_t coefficient = 1;
  int power = 0;
};

Count count_of(const Shape& shape) {
  Count count;
  for (const int64_t d : shape.dims()) {
    count.coefficient *= d < 0 ? -d : d;
    if (d < 0) ++count.power;
  }
  return count;
}

OpRow reshape_row() {
  OpRow row;
  row.name = "reshape";
  row.doc = {"the same elements in the same order under another shape", "dx = reshape(dy)", ""};
  row.attrs = {{"shape", std::nullopt}};
  row.view = true;
  row.aliases = {0};
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    const Shape& to = call.attrs.shape("shape");
    const Count a = count_of(call.in[0].shape), b = count_of(to);
    const bool fits = a.coefficient == b.coefficient && (a.power == b.power || a.coefficient == 0);
    NETCL_CHECK(fits, ErrorCode::kUsage, "shape ", call.in[0].shape.str(),
                " does not hold as many elements as ", to.str(),
                " (in a shape B is the batch size, written -1)");
    return {{call.in[0].dtype, to}};
  };
  row.gradient = [](const GradCall& c) -> Grads {
    return {c.recorder.call("reshape", {dy0(c)}, {{"shape", c.in_desc(0).shape}})};
  };
  row.reference = [](const OpCall&, const std::vector<const HostTensor*>& in,
                     std::vector<HostTensor>& out) { out[0].data = in[0]->data; };
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{1}, {}}, {{6}, {2, 3}}, {{2, 3, 5}, {30}}, {{0, 3}, {3, 0, 7}}, {{17, 1}, {1, 17}}};
  for (const auto& [from, to] : shapes) {
    OpCase c;
    c.in = {{DType::kF32, from}};
    c.attrs = {{"shape", to}};
    row.cases.push_back(c);
  }
  return row;
}

OpRow full_row() {
  OpRow row;
  row.name = "full";
  row.doc = {"y = value everywhere", "", ""};
  row.min_in = row.max_in = 0;
  row.attrs = {{"shape", std::nullopt}, {"value", 0.0}, {"dtype", std::string("f32")}};
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    return {{dtype_named(call.attrs.text("dtype")), call.attrs.shape("shape")}};
  };
  row.facts = [](const OpCall& call, Attrs& facts) {
    facts.set("n", call.attrs.shape("shape").num_elements());
  };
  row.reference = [](const OpCall& call, const std::vector<const HostTensor*>&,
                     std::vector<HostTensor>& out) {
    std::fill(out[0].data.begin(), out[0].data.end(), call.attrs.number("value"));
  };
  for (const Shape& shape :
       {Shape{}, Shape{1}, Shape{7}, Shape{13, 17}, Shape{0, 3}, Shape{1031}}) {
    OpCase c;
    c.attrs = {{"shape", shape}, {"value", 1.5}};
    row.cases.push_back(c);
  }
  for (const char* dtype : {"f16", "bf16", "i32", "i64", "u8", "bool"}) {
    OpCase c;
    c.attrs = {{"shape", Shape{3, 5}}, {"value", 1.0}, {"dtype", std::string(dtype)}};
    row.cases.push_back(c);
  }
  return row;
}

}  // namespace

void add_layout_rows(std::vector<OpRow>& rows) {
  rows.push_back(broadcast_row());
  rows.push_back(permute_row());
  rows.push_back(reshape_row());
  rows.push_back(full_row());
}

}  // namespace netcl
