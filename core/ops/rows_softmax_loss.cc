// Rows of softmax, log_softmax, cross_entropy and their backward ops.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/ops/checks.h"
#include "core/ops/gradients.h"
#include "core/ops/reduce.h"
#include "core/ops/rows.h"

namespace netcl {

namespace {

constexpr int64_t kIgnore = -100;  // a label that no class has
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

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

OpRow softmax_row(const std::string& name, size_t num_in, Line line) {
  OpRow row;
  row.name = name;
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

void check_loss_inputs(const OpCall& call) {
  const TensorDesc &logits = call.in[0], &labels = call.in[1];
  common_float(call, {0});
  NETCL_CHECK(logits.shape.rank() == 2, ErrorCode::kUsage, "logits must be [N,C], are ",
              logits.str());
  NETCL_CHECK(labels.dtype == DType::kI32 && (labels.shape == Shape{logits.shape[0]}),
              ErrorCode::kUsage, "labels must be i32 ", Shape{logits.shape[0]}.str(), ", are ",
              labels.str());
}

void loss_facts(const OpCall& call, Attrs& facts) {
  facts.set("N", call.in[0].shape[0]);
  facts.set("C", call.in[0].shape[1]);
}

// What a row's label says: a class, nothing (ignored), or nonsense (outside [0, C)). Nonsense makes
// loss and gradient not-a-number, on the devices too, so that a broken data set is seen.
enum class Label { kClass, kIgnored, kOutside };

Label kind_of(const OpCall& call, int64_t label) {
  if (label == call.attrs.integer("ignore_index")) return Label::kIgnored;
  return label >= 0 && label < call.in[0].shape[1] ? Label::kClass : Label::kOutside;
}

void cross_entropy_reference(const OpCall& call, const std::vector<const HostTensor*>& in,
                             std::vector<HostTensor>& out) {
  const auto classes = static_cast<size_t>(call.in[0].shape[1]);
  for (size_t n = 0; n < out[0].data.size(); ++n) {
    const auto label = static_cast<int64_t>(in[1]->data[n]);
    const Label kind = kind_of(call, label);
    const double* x = in[0]->data.data() + n * classes;
    out[1].data[n] = kind == Label::kIgnored ? 0 : 1;
    out[0].data[n] = kind == Label::kIgnored ? 0 : kNan;
    if (kind == Label::kClass) out[0].data[n] = log_sum_exp(x, classes, 1) - x[label];
  }
}

void cross_entropy_grad_reference(const OpCall& call, const std::vector<const HostTensor*>& in,
                                  std::vector<HostTensor>& out) {
  const auto classes = static_cast<size_t>(call.in[0].shape[1]);
  for (size_t n = 0; n < in[1]->data.size(); ++n) {
    const auto label = static_cast<int64_t>(in[1]->data[n]);
    const Label kind = kind_of(call, label);
    double* dx = out[0].data.data() + n * classes;
    if (kind != Label::kClass) {
      std::fill(dx, dx + classes, kind == Label::kIgnored ? 0 : kNan);
      continue;
    }
    softmax_line(in[0]->data.data() + n * classes, nullptr, dx, classes, 1);
    dx[label] -= 1;
    for (size_t k = 0; k < classes; ++k) dx[k] *= in[2]->data[n];
  }
}

std::vector<OpCase> loss_cases(bool with_dloss) {
  std::vector<OpCase> cases;
  const std::vector<Shape> shapes = {{1, 1}, {1, 7}, {5, 3}, {13, 17}, {64, 10}, {0, 3}, {3, 1031}};
  for (const Shape& shape : shapes) {
    for (const int64_t ignore : {kIgnore, int64_t{0}}) {
      OpCase c;
      c.in = {{DType::kF32, shape}, {DType::kI32, {shape[0]}}};
      if (with_dloss) c.in.push_back({DType::kF32, {shape[0]}});
      c.attrs = {{"ignore_index", ignore}};
      c.low = -4;
      c.high = 4;
      c.int_high = {0, shape[1]};
      if (ignore == 0) c.note = "class 0 is ignored";
      cases.push_back(c);
    }
  }
  OpCase c;
  c.in = {{DType::kF32, {4, 3}}, {DType::kI32, {4}}};
  if (with_dloss) c.in.push_back({DType::kF32, {4}});
  c.low = 200;
  c.high = 210;
  c.fixed = {{1, {2, static_cast<double>(kIgnore), 0, static_cast<double>(kIgnore)}}};
  c.note = "exp(200) overflows f32; two labels are ignored";
  cases.push_back(c);
  return cases;
}

}  // namespace

void add_softmax_loss_rows(std::vector<OpRow>& rows) {
  rows.push_back(softmax_row("softmax", 1, softmax_line));
  rows.push_back(softmax_row("log_softmax", 1, log_softmax_line));
  rows.push_back(softmax_row("softmax_grad", 2, softmax_grad_line));
  rows.push_back(softmax_row("log_softmax_grad", 2, log_softmax_grad_line));

  OpRow loss;
  loss.name = "cross_entropy";
  loss.half_storage = true;
  loss.autocast = Autocast::kFull;
  loss.min_in = loss.max_in = 2;
  loss.attrs = {{"ignore_index", kIgnore}};
  loss.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    check_loss_inputs(call);
    const TensorDesc per_row{DType::kF32, Shape{call.in[0].shape[0]}};
    return {per_row, per_row};
  };
  loss.facts = loss_facts;
  loss.gradient = [](const GradCall& c) -> Grads {
    if (!c.dy[0]) return {std::nullopt, std::nullopt};  // the weights do not depend on the logits
    return {
        c.recorder.call("cross_entropy_grad", {c.node.in[0], c.node.in[1], *c.dy[0]}, c.node.attrs),
        std::nullopt};
  };
  loss.reference = cross_entropy_reference;
  loss.cases = loss_cases(false);
  rows.push_back(std::move(loss));

  OpRow grad;
  grad.name = "cross_entropy_grad";
  grad.half_storage = true;
  grad.always_f32 = {2};
  grad.min_in = grad.max_in = 3;
  grad.attrs = {{"ignore_index", kIgnore}};
  grad.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    check_loss_inputs(call);
    NETCL_CHECK(call.in[2].dtype == DType::kF32 && call.in[2].shape == call.in[1].shape,
                ErrorCode::kUsage, "dloss must be f32 ", call.in[1].shape.str(), ", is ",
                call.in[2].str());
    return {call.in[0]};
  };
  grad.facts = loss_facts;
  grad.reference = cross_entropy_grad_reference;
  grad.cases = loss_cases(true);
  rows.push_back(std::move(grad));
}

}  // namespace netcl
