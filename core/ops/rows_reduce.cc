// Rows of the reductions. An op reduces neighbouring axes only, so that kernels see
// [outer, reduce, inner]; reduce() of reduce.h composes the rest.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/ops/checks.h"
#include "core/ops/gradients.h"
#include "core/ops/reduce.h"
#include "core/ops/rows.h"

namespace netcl {

namespace {

// Reduces `count` elements at x[0], x[step], ...
using Line = double (*)(const double* x, size_t count, size_t step, const Attrs& attrs);

bool keep_of(const Attrs& attrs) {
  const int64_t keep = attrs.integer("keep");
  NETCL_CHECK(keep == 0 || keep == 1, ErrorCode::kUsage, "attribute \"keep\" must be 0 or 1, is ",
              keep);
  return keep == 1;
}

std::vector<int64_t> axes_of(const Attrs& attrs, const Shape& shape) {
  if (attrs.has("axis")) return normal_axes({attrs.integer("axis")}, shape.rank());
  return normal_axes(attrs.integers("axes"), shape.rank());
}

std::vector<TensorDesc> infer_reduce(const OpCall& call, DType out) {
  const Shape& shape = call.in[0].shape;
  const std::vector<int64_t> axes = axes_of(call.attrs, shape);
  NETCL_CHECK(neighbours(axes, shape), ErrorCode::kUsage,
              "the axes are not neighbours; use netcl::reduce, which splits them into groups");
  return {{out, reduced_shape(shape, axes, keep_of(call.attrs))}};
}

// Floats and i64 keep their type, the shorter integers give i32.
DType reduced_type(const OpCall& call) {
  const DType in = call.in[0].dtype;
  return is_float(in) || in == DType::kI64 ? in : DType::kI32;
}

OpRow reduce_row(const std::string& name, OpDoc doc, Line line,
                 std::function<Grads(const GradCall&)> gradient) {
  OpRow row;
  row.name = name;
  row.doc = std::move(doc);
  row.attrs = {{"axes", std::vector<int64_t>{}}, {"keep", int64_t{0}}};
  row.half_storage = true;
  row.infer = [name](const OpCall& call) {
    const bool integers = name != "mean" && name != "var";
    return infer_reduce(call, integers ? reduced_type(call) : common_float(call));
  };
  row.facts = [](const OpCall& call, Attrs& facts) {
    span_facts(span_of(call.in[0].shape, axes_of(call.attrs, call.in[0].shape)), facts);
  };
  row.gradient = std::move(gradient);
  row.reference = [line](const OpCall& call, const std::vector<const HostTensor*>& in,
                         std::vector<HostTensor>& out) {
    const Shape& shape = call.in[0].shape;
    const ReduceSpan span = span_of(shape, axes_of(call.attrs, shape));
    for_each_line(span, [&](size_t i, size_t first, size_t step) {
      out[0].data[i] =
          line(in[0]->data.data() + first, static_cast<size_t>(span.reduce), step, call.attrs);
    });
  };
  return row;
}

std::vector<OpCase> reduce_cases(const std::string& note = "") {
  const std::vector<std::pair<Shape, std::vector<int64_t>>> shapes = {
      {{1}, {0}},          {{7}, {}},        {{13, 17}, {0}},     {{13, 17}, {1}},
      {{13, 17}, {}},      {{2, 3, 5}, {1}}, {{2, 3, 5}, {0, 1}}, {{2, 3, 5}, {-1, -2}},
      {{3, 1, 5}, {0, 2}}, {{1031, 3}, {0}}, {{3, 1031}, {1}},    {{0, 3}, {1}},
      {{2, 257, 5}, {1}}};
  std::vector<OpCase> out;
  int64_t keep = 0;
  for (const auto& [shape, axes] : shapes) {
    OpCase c;
    c.in = {{DType::kF32, shape}};
    c.attrs = {{"axes", axes}, {"keep", keep}};
    c.note = note;
    out.push_back(c);
    keep = 1 - keep;
  }
  return out;
}

// Cases of the other integer types, along each axis.
void add_integer_cases(std::vector<OpCase>* cases, const char* attr) {
  const std::vector<std::pair<DType, int64_t>> types = {
      {DType::kI32, 1000}, {DType::kI64, 1000}, {DType::kU8, 256}, {DType::kBool, 2}};
  for (const auto& [dtype, high] : types) {
    for (const int64_t axis : {0, 1}) {
      OpCase c;
      c.in = {{dtype, {13, 67}}};
      if (std::string(attr) == "axes") c.attrs.set(attr, std::vector<int64_t>{axis});
      if (std::string(attr) == "axis") c.attrs.set(attr, axis);
      c.int_high = {high};
      cases->push_back(c);
    }
  }
}

// The gradient of the output stretched back over the reduced axes.
ValueId spread(const GradCall& c, ValueId dy) {
  const Shape shape = c.in_desc(0).shape;
  const Shape kept = reduced_shape(shape, axes_of(c.node.attrs, shape), true);
  if (c.recorder.desc(dy).shape != kept) dy = c.recorder.call("reshape", {dy}, {{"shape", kept}});
  return dy;
}

ValueId stretched(const GradCall& c, ValueId dy) {
  const Shape shape = c.in_desc(0).shape;
  const ValueId kept = spread(c, dy);
  if (c.recorder.desc(kept).shape == shape) return kept;
  return c.recorder.call("broadcast_to", {kept}, {{"shape", shape}});
}

// dy / (reduced elements - correction). Over a symbolic axis the count is itself a value: the sum
// of a tensor of ones, known when the batch size is.
ValueId divided_by_count(const GradCall& c, ValueId dy, double correction) {
  const Shape shape = c.in_desc(0).shape;
  std::vector<int64_t> dims;
  for (const int64_t axis : axes_of(c.node.attrs, shape))
    dims.push_back(shape[static_cast<size_t>(axis)]);
  const Shape reduced(std::move(dims));
  if (!reduced.symbolic()) {
    return scaled(c.recorder, dy, 1 / (static_cast<double>(reduced.num_elements()) - correction));
  }
  const ValueId ones = c.recorder.call("full", {}, {{"shape", reduced}, {"value", 1.0}});
  const ValueId count = c.recorder.call("sum", {ones});
  return c.recorder.call("div", {dy, scaled(c.recorder, count, 1, -correction)});
}

// Elements equal to the extreme share its gradient evenly.
Grads extreme_gradient(const GradCall& c) {
  Recorder& r = c.recorder;
  const Shape shape = c.in_desc(0).shape;
  const std::vector<int64_t> axes = axes_of(c.node.attrs, shape);
  const ValueId hit = r.call("equal", {c.node.in[0], spread(c, c.node.out[0])});
  const ValueId mask = r.call("cast", {hit}, {{"dtype", std::string("f32")}});
  const ValueId ties = r.call("sum", {mask}, {{"axes", axes}, {"keep", int64_t{1}}});
  return {r.call("mul", {mask, r.call("div", {spread(c, dy0(c)), ties})})};
}

double line_sum(const double* x, size_t count, size_t step, const Attrs&) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += x[i * step];
  return sum;
}

double line_mean(const double* x, size_t count, size_t step, const Attrs& attrs) {
  return line_sum(x, count, step, attrs) / static_cast<double>(count);
}

// Of nothing: minus infinity. Not-a-number wins, as in every reduction.
double line_max(const double* x, size_t count, size_t step, const Attrs&) {
  double best = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < count; ++i) {
    if (x[i * step] > best || std::isnan(x[i * step])) best = x[i * step];
  }
  return best;
}

double line_min(const double* x, size_t count, size_t step, const Attrs&) {
  double best = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < count; ++i) {
    if (x[i * step] < best || std::isnan(x[i * step])) best = x[i * step];
  }
  return best;
}

double line_var(const double* x, size_t count, size_t step, const Attrs& attrs) {
  const double mean = line_mean(x, count, step, attrs);
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += (x[i * step] - mean) * (x[i * step] - mean);
  return sum / (static_cast<double>(count) - static_cast<double>(attrs.integer("correction")));
}

double line_argmax(const double* x, size_t count, size_t step, const Attrs&) {
  size_t best = 0;
  for (size_t i = 1; i < count; ++i) {
    const double a = x[i * step], b = x[best * step];
    if (a > b || (std::isnan(a) && !std::isnan(b))) best = i;
  }
  return static_cast<double>(best);
}

OpRow var_row() {
  const OpDoc doc = {"y = sum (x - mean(x))^2 / (n - correction), n elements along the axes",
                     "dx = 2 dy (x - mean(x)) / (n - correction)", ""};
  OpRow row = reduce_row("var", doc, line_var, [](const GradCall& c) -> Grads {
    Recorder& r = c.recorder;
    const Shape shape = c.in_desc(0).shape;
    const Attrs kept{{"axes", axes_of(c.node.attrs, shape)}, {"keep", int64_t{1}}};
    const ValueId x = c.node.in[0];
    const ValueId centred = r.call("sub", {x, r.call("mean", {x}, kept)});
    const ValueId dy = divided_by_count(c, spread(c, dy0(c)), c.node.attrs.number("correction"));
    return {r.call("mul", {scaled(r, centred, 2), dy})};
  });
  row.attrs.push_back({"correction", int64_t{1}});
  for (OpCase& c : reduce_cases()) {
    c.attrs.set("correction", int64_t{0});
    row.cases.push_back(c);
    const ReduceSpan span = span_of(c.in[0].shape, axes_of(c.attrs, c.in[0].shape));
    if (span.reduce < 2) continue;  // the divisor would be 0
    c.attrs.set("correction", int64_t{1});
    row.cases.push_back(c);
  }
  return row;
}

OpRow argmax_row() {
  const OpDoc doc = {"place of the maximum along the axis; the first of equal ones, or of NaNs", "",
                     ""};
  OpRow row = reduce_row("argmax", doc, line_argmax, nullptr);
  row.attrs = {{"axis", int64_t{-1}}, {"keep", int64_t{0}}};
  row.infer = [](const OpCall& call) { return infer_reduce(call, DType::kI32); };
  const std::vector<std::pair<Shape, int64_t>> shapes = {
      {{1}, 0},       {{7}, -1},   {{13, 17}, 0},  {{13, 17}, 1},
      {{2, 3, 5}, 1}, {{0, 3}, 1}, {{3, 1031}, -1}};
  int64_t keep = 0;
  for (const auto& [shape, axis] : shapes) {
    OpCase c;
    c.in = {{DType::kF32, shape}};
    c.attrs = {{"axis", axis}, {"keep", keep}};
    row.cases.push_back(c);
    keep = 1 - keep;
  }
  OpCase tie;
  tie.in = {{DType::kF32, {2, 5}}};
  tie.fixed = {{0, {1, 3, 2, 3, 0, 7, 7, 7, 7, 7}}};
  tie.note = "the first of equal elements wins";
  row.cases.push_back(tie);
  add_integer_cases(&row.cases, "axis");
  return row;
}

// y[i] = x[0] + ... + x[i] along the axis, or from the end.
OpRow cumsum_row() {
  OpRow row;
  row.name = "cumsum";
  row.half_storage = true;
  row.attrs = {{"axis", int64_t{-1}}, {"reverse", int64_t{0}}};
  const auto span = [](const OpCall& call) {
    const Shape& shape = call.in[0].shape;
    return span_of(shape, axes_of(call.attrs, shape));
  };
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    common_float(call);
    flag(call.attrs, "reverse");
    axes_of(call.attrs, call.in[0].shape);
    return {call.in[0]};
  };
  row.facts = [span](const OpCall& call, Attrs& facts) { span_facts(span(call), facts); };
  row.gradient = [](const GradCall& c) -> Grads {
    Attrs attrs = c.node.attrs;
    attrs.set("reverse", 1 - attrs.integer("reverse"));
    return {c.recorder.call("cumsum", {dy0(c)}, attrs)};
  };
  row.reference = [span](const OpCall& call, const std::vector<const HostTensor*>& in,
                         std::vector<HostTensor>& out) {
    const ReduceSpan s = span(call);
    const auto n = static_cast<size_t>(s.reduce);
    const bool reverse = flag(call.attrs, "reverse");
    for_each_line(s, [&](size_t, size_t first, size_t step) {
      double sum = 0;
      for (size_t i = 0; i < n; ++i) {
        const size_t at = first + (reverse ? n - 1 - i : i) * step;
        sum += in[0]->data[at];
        out[0].data[at] = sum;
      }
    });
  };
  const std::vector<std::pair<Shape, int64_t>> shapes = {
      {{1}, 0},       {{7}, -1},   {{13, 17}, 0}, {{13, 17}, 1},
      {{2, 3, 5}, 1}, {{0, 3}, 1}, {{3, 257}, 1}};
  for (const auto& [shape, axis] : shapes) {
    for (const int64_t reverse : {0, 1}) {
      OpCase c;
      c.in = {{DType::kF32, shape}};
      c.attrs = {{"axis", axis}, {"reverse", reverse}};
      row.cases.push_back(c);
    }
  }
  row.doc = {"y[i] = x[0] + ... + x[i] along the axis; reverse: x[i] + ... + x[n-1]",
             "dx = cumsum of dy from the other end", ""};
  return row;
}

}  // namespace

void add_reduce_rows(std::vector<OpRow>& rows) {
  OpRow sum =
      reduce_row("sum", {"y = sum of x along the axes; 0 of nothing", "dx = dy", ""}, line_sum,
                 [](const GradCall& c) -> Grads { return {stretched(c, dy0(c))}; });
  sum.cases = reduce_cases();
  for (const int64_t axis : {0, 1}) {  // a sum of nothing is 0
    OpCase c;
    c.in = {{DType::kF32, axis == 0 ? Shape{0, 3} : Shape{3, 0}}};
    c.attrs = {{"axes", std::vector<int64_t>{axis}}};
    sum.cases.push_back(c);
  }
  add_integer_cases(&sum.cases, "axes");
  rows.push_back(std::move(sum));

  OpRow mean = reduce_row(
      "mean", {"y = sum of x along the axes / n", "dx = dy / n", ""}, line_mean,
      [](const GradCall& c) -> Grads { return {stretched(c, divided_by_count(c, dy0(c), 0))}; });
  mean.cases = reduce_cases();
  rows.push_back(std::move(mean));

  const std::string note = "ties, where the slope jumps, are points that random values miss";
  const std::string shares = "dx = dy / (number of x equal to y) where x = y, else 0";
  OpRow max_row =
      reduce_row("max_reduce", {"y = maximum of x along the axes; NaN if one is", shares, ""},
                 line_max, extreme_gradient);
  max_row.cases = reduce_cases(note);
  add_integer_cases(&max_row.cases, "axes");
  rows.push_back(std::move(max_row));
  OpRow min_row =
      reduce_row("min_reduce", {"y = minimum of x along the axes; NaN if one is", shares, ""},
                 line_min, extreme_gradient);
  min_row.cases = reduce_cases(note);
  add_integer_cases(&min_row.cases, "axes");
  rows.push_back(std::move(min_row));

  rows.push_back(var_row());
  rows.push_back(argmax_row());
  rows.push_back(cumsum_row());
}

}  // namespace netcl
