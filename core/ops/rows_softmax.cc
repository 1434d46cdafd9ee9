// Rows of softmax, log_softmax and their backward ops.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/ops/checks.h"
#include "core/ops/gradients.h"
#include "core/ops/reduce.h"
#include "core/ops/rows.h"

namespace netcl {

namespace {

ReduceSpan softmax_span(const OpCall& call) {
  const Shape& shape = call.in[0].shape;
  return span_of(shape, normal_axes({call.attrs.integer("axis")}, shape.rank()));
}

std::vector<TensorDesc> infer_same(const OpCall& call) {
  common_float(call);
  for (const TensorDesc& desc : call.in) {
    NETCL_CHECK(desc.shape == call.in[0].shape, ErrorCode::kUsage, "the inputs' shapes differ");
  }
  NETCL_CHECK(call.in[0].shape.rank() > 0, ErrorCode::kUsage, "needs a tensor with an axis");
  normal_axes({call.attrs.integer("axis")}, call.in[0].shape.rank());
  return {call.in[0]};
}

using Line = void (*)(const double* a, const double* b, double* out, size_t count, size_t step);

double line_max(const double* x, size_t count, size_t step) {
  double best = x[0];
  for (size_t i = 1; i < count; ++i) best = std::max(best, x[i * step]);
  return best;
}

double log_sum_exp(const double* x, size_t count, size_t step) {
  const double top = line_max(x, count, step);
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += std::exp(x[i * step] - top);
  return top + std::log(sum);
}

void softmax_line(const double* x, const double*, double* y, size_t count, size_t step) {
  const double log_sum = log_sum_exp(x, count, step);
  for (size_t i = 0; i < count; ++i) y[i * step] = std::exp(x[i * step] - log_sum);
}

void log_softmax_line(const double* x, const double*, double* y, size_t count, size_t step) {
  const double log_sum = log_sum_exp(x, count, step);
  for (size_t i = 0; i < count; ++i) y[i * step] = x[i * step] - log_sum;
}

// dx = y (dy - sum(dy y))
void softmax_grad_line(const double* dy, const double* y, double* dx, size_t count, size_t step) {
  double dot = 0;
  for (size_t i = 0; i < count; ++i) dot += dy[i * step] * y[i * step];
  for (size_t i = 0; i < count; ++i) dx[i * step] = y[i * step] * (dy[i * step] - dot);
}

// dx = dy - exp(y) sum(dy)
void log_softmax_grad_line(const double* dy, const double* y, double* dx, size_t count,
                           size_t step) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += dy[i * step];
  for (size_t i = 0; i < count; ++i) dx[i * step] = dy[i * step] - std::exp(y[i * step]) * sum;
}

OpRow softmax_row(const std::string& name, size_t num_in, Line line, OpDoc doc) {
  OpRow row;
  row.name = name;
  row.doc = std::move(doc);
  row.half_storage = true;
  row.autocast = Autocast::kFull;
  row.min_in = row.max_in = num_in;
  row.attrs = {{"axis", int64_t{-1}}};
  row.infer = infer_same;
  row.facts = [](const OpCall& call, Attrs& facts) { span_facts(softmax_span(call), facts); };
  if (num_in == 1) row.gradient = grad_from_output(name + "_grad");
  row.reference = [line](const OpCall& call, const std::vector<const HostTensor*>& in,
                         std::vector<HostTensor>& out) {
    const ReduceSpan span = softmax_span(call);
    if (span.reduce == 0) return;
    for_each_line(span, [&](size_t, size_t first, size_t step) {
      line(in[0]->data.data() + first, in.back()->data.data() + first, out[0].data.data() + first,
           static_cast<size_t>(span.reduce), step);
    });
  };
  const std::vector<std::pair<Shape, int64_t>> shapes = {
      {{1}, 0},     {{7}, -1},    {{13, 17}, -1},  {{13, 17}, 0}, {{2, 3, 5}, 1},
      {{3, 1}, -1}, {{0, 3}, -1}, {{3, 1031}, -1}, {{64, 10}, 1}};
  for (const auto& [shape, axis] : shapes) {
    OpCase c;
    c.in.assign(num_in, {DType::kF32, shape});
    c.attrs = {{"axis", axis}};
    c.low = num_in == 1 ? -4 : -1;
    c.high = num_in == 1 ? 4 : 1;
    row.cases.push_back(c);
  }
  if (num_in == 1) {
    OpCase large;
    large.in = {{DType::kF32, {3, 7}}};
    large.low = 200;
    large.high = 210;
    large.note = "exp(200) overflows f32: the greatest element must be taken off first";
    row.cases.push_back(large);
  }
  return row;
}

}  // namespace

void add_softmax_rows(std::vector<OpRow>& rows) {
  rows.push_back(softmax_row("softmax", 1, softmax_line,
                             {"y = exp(x - max(x)) / sum exp(x - max(x)) along the axis",
                              "dx = softmax_grad(dy, y)", ""}));
  rows.push_back(softmax_row("log_softmax", 1, log_softmax_line,
                             {"y = x - max(x) - log sum exp(x - max(x)) along the axis",
                              "dx = log_softmax_grad(dy, y)", ""}));
  rows.push_back(softmax_row("softmax_grad", 2, softmax_grad_line,
                             {"dx = y (dy - sum(dy y)) along the axis", "", ""}));
  rows.push_back(softmax_row("log_softmax_grad", 2, log_softmax_grad_line,
                             {"dx = dy - exp(y) sum(dy) along the axis", "", ""}));
}

}  // namespace netcl
