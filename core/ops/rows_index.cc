// Rows that take tensors apart and put them together by position: slice, pad and concat. Slice and
// pad are each other's gradients; pad can spread its input, as the gradient of a step needs.
#include <algorithm>

#include "core/base/error.h"
#include "core/ops/checks.h"
#include "core/ops/gradients.h"
#include "core/ops/reduce.h"
#include "core/ops/reference/iterate.h"
#include "core/ops/rows.h"

namespace netcl {

namespace {

using Ints = std::vector<int64_t>;

constexpr size_t kMaxConcat = 8;

// The elements start, start + step, ... of every dimension; `size` of them.
struct Window {
  Ints start, size, step;
};

Ints row_major_strides(const Shape& shape) {
  Ints strides(shape.rank(), 1);
  for (size_t d = shape.rank(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

Ints right_aligned(const Ints& values, int64_t fill) {
  Ints out(NETCL_MAX_RANK, fill);
  std::copy(values.begin(), values.end(), out.end() - static_cast<int64_t>(values.size()));
  return out;
}

// Axes and lengths are checked here; an axis that grows with the batch cannot be cut.
Window slice_window(const OpCall& call) {
  const Shape& shape = call.in[0].shape;
  const Ints &axes = call.attrs.integers("axes"), &start = call.attrs.integers("start"),
             &stop = call.attrs.integers("stop"), &step = call.attrs.integers("step");
  NETCL_CHECK(start.size() == axes.size() && stop.size() == axes.size() &&
                  (step.empty() || step.size() == axes.size()),
              ErrorCode::kUsage, "axes names ", axes.size(), " axes, start ", start.size(),
              ", stop ", stop.size(), " and step ", step.size(), "; give one of each an axis");
  Window w{Ints(shape.rank(), 0), shape.dims(), Ints(shape.rank(), 1)};
  if (axes.empty()) return w;
  normal_axes(axes, shape.rank());
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto d =
        static_cast<size_t>(axes[i] < 0 ? axes[i] + static_cast<int64_t>(shape.rank()) : axes[i]);
    const int64_t n = shape[d], by = step.empty() ? 1 : step[i];
    NETCL_CHECK(n >= 0, ErrorCode::kUsage, "axis ", d, " of ", shape.str(),
                " depends on the batch size and cannot be cut");
    NETCL_CHECK(by >= 1, ErrorCode::kUsage, "step must be at least 1, is ", by, " for axis ", d);
    const int64_t from = start[i] < 0 ? start[i] + n : start[i];
    const int64_t to = std::min(stop[i] < 0 ? stop[i] + n : stop[i], n);
    NETCL_CHECK(from >= 0 && from <= to, ErrorCode::kUsage, "start ", start[i], " and stop ",
                stop[i], " do not lie in order within axis ", d, " of ", shape.str());
    w.start[d] = from;
    w.size[d] = (to - from + by - 1) / by;
    w.step[d] = by;
  }
  return w;
}

// Facts of the kernel: the output's dimensions, the input's stride for each, and the first element.
void slice_facts(const OpCall& call, Attrs& facts) {
  const Window w = slice_window(call);
  const Ints plain = row_major_strides(call.in[0].shape);
  Ints dims, strides;
  int64_t offset = 0;
  for (size_t d = 0; d < plain.size(); ++d) {
    offset += w.start[d] * plain[d];
    const int64_t stride = plain[d] * w.step[d];
    if (!dims.empty() && strides.back() == stride * w.size[d]) {  // one run with its neighbour
      dims.back() *= w.size[d];
      strides.back() = stride;
    } else {
      dims.push_back(w.size[d]);
      strides.push_back(stride);
    }
  }
  facts.set("n", Shape(w.size).num_elements());
  facts.set("offset", offset);
  facts.set("dims", right_aligned(dims, 1));
  facts.set("strides0", right_aligned(strides, 0));
}

int64_t spread(int64_t size, int64_t step) { return size == 0 ? 0 : (size - 1) * step + 1; }

Grads slice_gradient(const GradCall& c) {
  const TensorDesc x = c.in_desc(0);
  const Window w = slice_window({*c.node.op, {x}, c.node.attrs});
  Ints low, high;
  for (size_t d = 0; d < w.start.size(); ++d) {
    const bool whole = w.size[d] == x.shape[d] && w.step[d] == 1;
    low.push_back(whole ? 0 : w.start[d]);
    high.push_back(whole ? 0 : x.shape[d] - w.start[d] - spread(w.size[d], w.step[d]));
  }
  return {c.recorder.call("pad", {dy0(c)}, {{"low", low}, {"high", high}, {"step", w.step}})};
}

OpRow slice_row() {
  OpRow row;
  row.name = "slice";
  row.attrs = {
      {"axes", std::nullopt}, {"start", std::nullopt}, {"stop", std::nullopt}, {"step", Ints{}}};
  row.half_storage = true;
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    return {{call.in[0].dtype, Shape(slice_window(call).size)}};
  };
  row.facts = slice_facts;
  row.gradient = slice_gradient;
  row.reference = [](const OpCall& call, const std::vector<const HostTensor*>& in,
                     std::vector<HostTensor>& out) {
    const Window w = slice_window(call);
    Ints strides = row_major_strides(call.in[0].shape);
    int64_t offset = 0;
    for (size_t d = 0; d < strides.size(); ++d) {
      offset += w.start[d] * strides[d];
      strides[d] *= w.step[d];
    }
    for_each_strided(out[0].desc.shape, {strides}, [&](int64_t e, const Ints& at) {
      out[0].data[static_cast<size_t>(e)] = in[0]->data[static_cast<size_t>(offset + at[0])];
    });
  };
  row.doc = {
      "y[i] = x[start + step i] along each of the axes, up to stop (from the end if negative)",
      "dx = dy in place, 0 elsewhere", ""};
  const auto add = [&row](const Shape& x, const Ints& axes, const Ints& start, const Ints& stop,
                          const Ints& step) {
    OpCase c;
    c.in = {{DType::kF32, x}};
    c.attrs = {{"axes", axes}, {"start", start}, {"stop", stop}, {"step", step}};
    row.cases.push_back(std::move(c));
  };
  add({1}, {0}, {0}, {1}, {});
  add({7}, {0}, {2}, {6}, {});
  add({7}, {0}, {1}, {7}, {3});
  add({13, 17}, {-1}, {-5}, {1 << 20}, {});
  add({5, 6, 7}, {0, 2}, {1, 2}, {4, -1}, {2, 3});
  add({2, 3, 4, 5}, {1}, {1}, {2}, {});
  add({4, 5}, {}, {}, {}, {});
  add({4, 5}, {0}, {2}, {2}, {});
  add({0, 5}, {1}, {1}, {4}, {2});
  add({2, 2, 2, 2, 2, 2, 2, 3}, {1, 7}, {1, 0}, {2, 3}, {1, 2});
  for (const DType dtype : {DType::kI32, DType::kI64, DType::kU8, DType::kBool}) {
    OpCase c;
    c.in = {{dtype, {3, 5}}};
    c.int_high = {dtype == DType::kBool ? 2 : 100};
    c.attrs = {{"axes", Ints{1}}, {"start", Ints{1}}, {"stop", Ints{4}}};
    row.cases.push_back(std::move(c));
  }
  return row;
}

// ---- pad ----

struct Padding {
  Ints low, high, step;
};

Padding padding_of(const OpCall& call) {
  const Shape& shape = call.in[0].shape;
  Padding p{call.attrs.integers("low"), call.attrs.integers("high"), call.attrs.integers("step")};
  if (p.step.empty()) p.step.assign(shape.rank(), 1);
  NETCL_CHECK(p.low.size() == shape.rank() && p.high.size() == shape.rank() &&
                  p.step.size() == shape.rank(),
              ErrorCode::kUsage, "low, high and step must have one number for each dimension of ",
              shape.str());
  for (size_t d = 0; d < shape.rank(); ++d) {
    NETCL_CHECK(p.low[d] >= 0 && p.high[d] >= 0 && p.step[d] >= 1, ErrorCode::kUsage, "dimension ",
                d,
                ": low and high must be at least 0 and step at least 1; use slice "
                "to cut");
    NETCL_CHECK(shape[d] >= 0 || (p.low[d] == 0 && p.high[d] == 0 && p.step[d] == 1),
                ErrorCode::kUsage, "dimension ", d, " of ", shape.str(),
                " depends on the batch size and cannot be padded");
  }
  return p;
}

Shape padded_shape(const OpCall& call) {
  const Padding p = padding_of(call);
  Ints dims = call.in[0].shape.dims();
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] >= 0) dims[d] = p.low[d] + spread(dims[d], p.step[d]) + p.high[d];
  }
  return Shape(std::move(dims));
}

void pad_facts(const OpCall& call, Attrs& facts) {
  const Padding p = padding_of(call);
  const Shape &x = call.in[0].shape, y = padded_shape(call);
  Ints dims, in_dims, lows, steps;
  for (size_t d = 0; d < x.rank(); ++d) {
    if (!dims.empty() && steps.back() == 1 && x[d] == y[d]) {  // untouched: one with the one before
      dims.back() *= y[d];
      in_dims.back() *= x[d];
      lows.back() *= x[d];
    } else {
      dims.push_back(y[d]);
      in_dims.push_back(x[d]);
      lows.push_back(p.low[d]);
      steps.push_back(p.step[d]);
    }
  }
  facts.set("n", y.num_elements());
  facts.set("dims", right_aligned(dims, 1));
  facts.set("in_dims", right_aligned(in_dims, 1));
  facts.set("lows", right_aligned(lows, 0));
  facts.set("steps", right_aligned(steps, 1));
}

Grads pad_gradient(const GradCall& c) {
  const TensorDesc x = c.in_desc(0);
  const Padding p = padding_of({*c.node.op, {x}, c.node.attrs});
  Ints axes, start, stop, step;
  for (size_t d = 0; d < p.low.size(); ++d) {
    if (x.shape[d] < 0) continue;  // untouched
    axes.push_back(static_cast<int64_t>(d));
    start.push_back(p.low[d]);
    stop.push_back(p.low[d] + spread(x.shape[d], p.step[d]));
    step.push_back(p.step[d]);
  }
  return {c.recorder.call("slice", {dy0(c)},
                          {{"axes", axes}, {"start", start}, {"stop", stop}, {"step", step}})};
}

OpRow pad_row() {
  OpRow row;
  row.name = "pad";
  row.attrs = {{"low", std::nullopt}, {"high", std::nullopt}, {"step", Ints{}}, {"value", 0.0}};
  row.half_storage = true;
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    return {{call.in[0].dtype, padded_shape(call)}};
  };
  row.facts = pad_facts;
  row.gradient = pad_gradient;
  row.reference = [](const OpCall& call, const std::vector<const HostTensor*>& in,
                     std::vector<HostTensor>& out) {
    const Padding p = padding_of(call);
    std::fill(out[0].data.begin(), out[0].data.end(), call.attrs.number("value"));
    Ints strides = row_major_strides(out[0].desc.shape);
    int64_t offset = 0;
    for (size_t d = 0; d < strides.size(); ++d) {
      offset += p.low[d] * strides[d];
      strides[d] *= p.step[d];
    }
    for_each_strided(call.in[0].shape, {strides}, [&](int64_t e, const Ints& at) {
      out[0].data[static_cast<size_t>(offset + at[0])] = in[0]->data[static_cast<size_t>(e)];
    });
  };
  row.doc = {"y[low + step i] = x[i], value elsewhere", "dx[i] = dy[low + step i]", ""};
  const auto add = [&row](const Shape& x, const Ints& low, const Ints& high, const Ints& step,
                          double value) {
    OpCase c;
    c.in = {{DType::kF32, x}};
    c.attrs = {{"low", low}, {"high", high}, {"step", step}, {"value", value}};
    row.cases.push_back(std::move(c));
  };
  add({1}, {0}, {0}, {}, 0);
  add({1}, {2}, {3}, {}, 1.5);
  add({7}, {1}, {0}, {3}, 0);
  add({13, 17}, {2, 0}, {1, 0}, {}, -2);
  add({3, 5, 7}, {1, 2, 0}, {0, 2, 3}, {2, 1, 3}, 0);
  add({2, 3, 4, 5}, {0, 1, 0, 0}, {0, 1, 0, 0}, {}, 0);
  add({0, 3}, {0, 1}, {0, 1}, {}, 0);
  add({0, 3}, {2, 0}, {1, 0}, {2, 1}, 0.5);
  add({2, 1, 2, 1, 2, 1, 2, 3}, {0, 1, 0, 0, 1, 0, 0, 1}, {1, 0, 0, 1, 0, 0, 0, 1}, {}, 0);
  OpCase integers;
  integers.in = {{DType::kI32, {3, 5}}};
  integers.int_high = {100};
  integers.attrs = {{"low", Ints{0, 1}}, {"high", Ints{2, 0}}, {"value", -100.0}};
  row.cases.push_back(std::move(integers));
  return row;
}

// ---- concat ----

struct Joint {
  size_t axis = 0;
  Shape shape;
};

Joint joint_of(const OpCall& call) {
  const Shape& first = call.in[0].shape;
  NETCL_CHECK(first.rank() > 0, ErrorCode::kUsage, "needs tensors with an axis");
  Joint j{static_cast<size_t>(normal_axes({call.attrs.integer("axis")}, first.rank())[0]), first};
  for (size_t i = 0; i < call.in.size(); ++i) {
    const TensorDesc& desc = call.in[i];
    NETCL_CHECK(desc.dtype == call.in[0].dtype, ErrorCode::kUsage, "input 0 is ", call.in[0].str(),
                " and input ", i, " ", desc.str(), "; cast one of them");
    bool fits = desc.shape.rank() == first.rank();
    for (size_t d = 0; fits && d < first.rank(); ++d) {
      fits = d == j.axis || desc.shape[d] == first[d];
    }
    NETCL_CHECK(fits, ErrorCode::kUsage, "input 0 is ", first.str(), " and input ", i, " ",
                desc.shape.str(), ": they must be equal but for axis ", j.axis);
    const bool batch = desc.shape[j.axis] < 0 || first[j.axis] < 0;
    NETCL_CHECK(!batch || call.in.size() == 1, ErrorCode::kUsage, "axis ", j.axis,
                " depends on the batch size; join along another");
    if (i > 0) j.shape[j.axis] += desc.shape[j.axis];
  }
  return j;
}

Grads concat_gradient(const GradCall& c) {
  const int64_t attr = c.node.attrs.integer("axis");
  const auto rank = static_cast<int64_t>(c.in_desc(0).shape.rank());
  const int64_t axis = attr < 0 ? attr + rank : attr;
  if (c.node.in.size() == 1) return {dy0(c)};
  Grads out;
  int64_t at = 0;
  for (size_t i = 0; i < c.node.in.size(); ++i) {
    const int64_t end = at + c.in_desc(i).shape[static_cast<size_t>(axis)];
    if (c.needed[i]) {
      out.push_back(c.recorder.call(
          "slice", {dy0(c)}, {{"axes", Ints{axis}}, {"start", Ints{at}}, {"stop", Ints{end}}}));
    } else {
      out.push_back(std::nullopt);
    }
    at = end;
  }
  return out;
}

OpRow concat_row() {
  OpRow row;
  row.name = "concat";
  row.max_in = kMaxConcat;
  row.attrs = {{"axis", std::nullopt}};
  row.half_storage = true;
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    return {{call.in[0].dtype, joint_of(call).shape}};
  };
  row.facts = [](const OpCall& call, Attrs& facts) {
    const Joint j = joint_of(call);
    const auto axis = static_cast<int64_t>(j.axis);
    const ReduceSpan span = span_of(j.shape, {axis});
    facts.set("outer", span.outer);
    facts.set("row", span.reduce * span.inner);
    int64_t at = 0;
    for (size_t i = 0; i < kMaxConcat; ++i) {
      const int64_t length = i < call.in.size() ? call.in[i].shape[j.axis] * span.inner : 0;
      facts.set("length" + std::to_string(i), length);
      facts.set("at" + std::to_string(i), at);
      at += length;
    }
  };
  row.gradient = concat_gradient;
  row.reference = [](const OpCall& call, const std::vector<const HostTensor*>& in,
                     std::vector<HostTensor>& out) {
    const Joint j = joint_of(call);
    const ReduceSpan span = span_of(j.shape, {static_cast<int64_t>(j.axis)});
    int64_t at = 0;
    for (size_t i = 0; i < in.size(); ++i) {
      const int64_t length = call.in[i].shape[j.axis] * span.inner;
      for (int64_t o = 0; o < span.outer; ++o) {
        std::copy_n(in[i]->data.begin() + o * length, length,
                    out[0].data.begin() + o * span.reduce * span.inner + at);
      }
      at += length;
    }
  };
  row.doc = {"the inputs one after the other along the axis",
             "dx_i = the slice of dy that x_i became", ""};
  const auto add = [&row](const std::vector<Shape>& shapes, int64_t axis) {
    OpCase c;
    for (const Shape& shape : shapes) c.in.push_back({DType::kF32, shape});
    c.attrs = {{"axis", axis}};
    row.cases.push_back(std::move(c));
  };
  add({{1}}, 0);
  add({{3}, {1}, {7}}, 0);
  add({{13, 17}, {13, 5}}, -1);
  add({{2, 3, 5}, {4, 3, 5}}, 0);
  add({{3, 2, 5}, {3, 1, 5}, {3, 0, 5}, {3, 4, 5}}, 1);
  add({{2, 1}, {2, 2}, {2, 3}, {2, 4}, {2, 1}, {2, 2}, {2, 3}, {2, 4}}, 1);
  add({{0, 3}, {0, 2}}, 1);
  for (const DType dtype : {DType::kI32, DType::kU8}) {
    OpCase c;
    c.in = {{dtype, {3, 5}}, {dtype, {3, 2}}};
    c.int_high = {100, 100};
    c.attrs = {{"axis", int64_t{1}}};
    row.cases.push_back(std::move(c));
  }
  return row;
}

}  // namespace

void add_index_rows(std::vector<OpRow>& rows) {
  rows.push_back(slice_row());
  rows.push_back(pad_row());
  rows.push_back(concat_row());
}

}  // namespace netcl
