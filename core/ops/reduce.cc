#include "core/ops/reduce.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"

namespace netcl {

std::vector<int64_t> normal_axes(const std::vector<int64_t>& axes, size_t rank) {
  const auto n = static_cast<int64_t>(rank);
  std::vector<int64_t> out(axes);
  if (out.empty()) {
    out.resize(rank);
    std::iota(out.begin(), out.end(), 0);
  }
  for (int64_t& axis : out) {
    NETCL_CHECK(axis >= -n && axis < n, ErrorCode::kUsage, "axis ", axis,
                " is out of range for a tensor of ", rank, " dimensions");
    if (axis < 0) axis += n;
  }
  std::sort(out.begin(), out.end());
  const auto twice = std::adjacent_find(out.begin(), out.end());
  NETCL_CHECK(twice == out.end(), ErrorCode::kUsage, "axis ", *twice, " is named twice");
  return out;
}

bool neighbours(const std::vector<int64_t>& axes, const Shape& shape) {
  for (size_t i = 1; i < axes.size(); ++i) {
    for (int64_t d = axes[i - 1] + 1; d < axes[i]; ++d) {
      if (shape[static_cast<size_t>(d)] != 1) return false;
    }
  }
  return true;
}

ReduceSpan span_of(const Shape& shape, const std::vector<int64_t>& axes) {
  ReduceSpan span;
  if (axes.empty()) return span;
  for (size_t d = 0; d < shape.rank(); ++d) {
    const auto axis = static_cast<int64_t>(d);
    int64_t& part = axis < axes.front()  ? span.outer
                    : axis > axes.back() ? span.inner
                                         : span.reduce;
    part *= shape[d];
  }
  return span;
}

Shape reduced_shape(const Shape& shape, const std::vector<int64_t>& axes, bool keep) {
  std::vector<int64_t> out;
  for (size_t d = 0; d < shape.rank(); ++d) {
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(d))) {
      out.push_back(shape[d]);
    } else if (keep) {
      out.push_back(1);
    }
  }
  return Shape(std::move(out));
}

void span_facts(const ReduceSpan& span, Attrs& facts) {
  facts.set("outer", span.outer);
  facts.set("reduce", span.reduce);
  facts.set("inner", span.inner);
}

namespace {

Attrs reduce_attrs(const std::string& op, std::vector<int64_t> axes, bool keep,
                   int64_t correction) {
  Attrs attrs{{"axes", std::move(axes)}, {"keep", int64_t{keep}}};
  if (op == "var") attrs.set("correction", correction);
  return attrs;
}

// Permutes the axes to the end, reduces them there, and gives the result its final shape.
ValueId reduce_permuted(Recorder& recorder, const std::string& op, ValueId x,
                        const std::vector<int64_t>& axes, bool keep, int64_t correction) {
  const Shape shape = recorder.desc(x).shape;
  std::vector<int64_t> order, last;
  for (size_t d = 0; d < shape.rank(); ++d) {
    const auto axis = static_cast<int64_t>(d);
    if (!std::binary_search(axes.begin(), axes.end(), axis)) order.push_back(axis);
  }
  for (size_t i = 0; i < axes.size(); ++i) last.push_back(static_cast<int64_t>(order.size() + i));
  order.insert(order.end(), axes.begin(), axes.end());
  const ValueId moved = recorder.call("permute", {x}, {{"axes", order}});
  const ValueId y = recorder.call(op, {moved}, reduce_attrs(op, last, false, correction));
  if (!keep) return y;
  return recorder.call("reshape", {y}, {{"shape", reduced_shape(shape, axes, true)}});
}

}  // namespace

ValueId reduce(Recorder& recorder, const std::string& op, ValueId x, std::vector<int64_t> axes,
               bool keep, int64_t correction) {
  const Shape shape = recorder.desc(x).shape;
  axes = normal_axes(axes, shape.rank());
  if (neighbours(axes, shape)) {
    return recorder.call(op, {x}, reduce_attrs(op, axes, keep, correction));
  }
  if (op == "var") return reduce_permuted(recorder, op, x, axes, keep, correction);
  ValueId y = x;
  std::vector<int64_t> group;
  for (size_t i = 0; i < axes.size(); ++i) {
    group.push_back(axes[i]);
    if (i + 1 < axes.size() && neighbours({axes[i], axes[i + 1]}, shape)) continue;
    y = recorder.call(op, {y}, reduce_attrs(op, group, true, correction));
    group.clear();
  }
  if (keep) return y;
  return recorder.call("reshape", {y}, {{"shape", reduced_shape(shape, axes, false)}});
}

}  // namespace netcl
