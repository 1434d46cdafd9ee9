// Rows of cross_entropy and nll: losses of logits or logarithms of probabilities [N,C] against
// labels i32[N], one loss and one weight a row, so that sum(loss) / sum(weight) is the mean.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/ops/checks.h"
#include "core/ops/gradients.h"
#include "core/ops/rows.h"

namespace netcl {

namespace {

constexpr int64_t kIgnore = -100;  // a label that no class has
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Input `weight` (if it is there) holds class weights f32[C].
void check_loss_inputs(const OpCall& call, size_t weight) {
  common_float(call, {0});
  require_rank(call, 0, 2, "[N,C]; reshape more dimensions to one row a label");
  const Shape& logits = call.in[0].shape;
  require_desc(call, 1, {DType::kI32, Shape{logits[0]}}, "labels");
  if (call.in.size() > weight) {
    require_desc(call, weight, {DType::kF32, Shape{logits[1]}}, "class weights");
  }
  if (!call.attrs.has("label_smoothing")) return;
  const double smoothing = call.attrs.number("label_smoothing");
  NETCL_CHECK(smoothing >= 0 && smoothing <= 1, ErrorCode::kUsage,
              "attribute \"label_smoothing\" must be from 0 to 1, is ", smoothing);
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

double log_sum_exp(const double* x, size_t count) {
  const double top = *std::max_element(x, x + count);
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += std::exp(x[i] - top);
  return top + std::log(sum);
}

// The share of class c in the target of a row: 1 - smoothing + smoothing / C of its label,
// smoothing / C of the others; times the class's weight.
double target_of(const OpCall& call, const HostTensor* weights, int64_t label, size_t c) {
  const auto classes = static_cast<double>(call.in[0].shape[1]);
  const double smoothing = call.attrs.number("label_smoothing");
  const double hit = static_cast<size_t>(label) == c ? 1 - smoothing : 0;
  return (hit + smoothing / classes) * (weights == nullptr ? 1 : weights->data[c]);
}

void cross_entropy_reference(const OpCall& call, const std::vector<const HostTensor*>& in,
                             std::vector<HostTensor>& out) {
  const auto classes = static_cast<size_t>(call.in[0].shape[1]);
  const HostTensor* weights = in.size() > 2 ? in[2] : nullptr;
  for (size_t n = 0; n < out[0].data.size(); ++n) {
    const auto label = static_cast<int64_t>(in[1]->data[n]);
    const Label kind = kind_of(call, label);
    out[1].data[n] = kind == Label::kIgnored ? 0 : 1;
    out[0].data[n] = kind == Label::kIgnored ? 0 : kNan;
    if (kind != Label::kClass) continue;
    const double* x = in[0]->data.data() + n * classes;
    const double log_sum = log_sum_exp(x, classes);
    if (weights != nullptr) out[1].data[n] = weights->data[static_cast<size_t>(label)];
    out[0].data[n] = 0;
    for (size_t c = 0; c < classes; ++c) {
      const double target = target_of(call, weights, label, c);
      if (target != 0) out[0].data[n] += target * (log_sum - x[c]);
    }
  }
}

void cross_entropy_grad_reference(const OpCall& call, const std::vector<const HostTensor*>& in,
                                  std::vector<HostTensor>& out) {
  const auto classes = static_cast<size_t>(call.in[0].shape[1]);
  const HostTensor* weights = in.size() > 3 ? in[3] : nullptr;
  for (size_t n = 0; n < in[1]->data.size(); ++n) {
    const auto label = static_cast<int64_t>(in[1]->data[n]);
    const Label kind = kind_of(call, label);
    double* dx = out[0].data.data() + n * classes;
    if (kind != Label::kClass) {
      std::fill(dx, dx + classes, kind == Label::kIgnored ? 0 : kNan);
      continue;
    }
    const double* x = in[0]->data.data() + n * classes;
    const double log_sum = log_sum_exp(x, classes);
    double total = 0;
    for (size_t c = 0; c < classes; ++c) total += target_of(call, weights, label, c);
    for (size_t c = 0; c < classes; ++c) {
      const double slope = total * std::exp(x[c] - log_sum) - target_of(call, weights, label, c);
      dx[c] = slope * in[2]->data[n];
    }
  }
}

void nll_reference(const OpCall& call, const std::vector<const HostTensor*>& in,
                   std::vector<HostTensor>& out) {
  const auto classes = static_cast<size_t>(call.in[0].shape[1]);
  for (size_t n = 0; n < out[0].data.size(); ++n) {
    const auto label = static_cast<int64_t>(in[1]->data[n]);
    const Label kind = kind_of(call, label);
    out[1].data[n] = kind == Label::kIgnored ? 0 : 1;
    out[0].data[n] = kind == Label::kIgnored ? 0 : kNan;
    if (kind != Label::kClass) continue;
    const auto c = static_cast<size_t>(label);
    if (in.size() > 2) out[1].data[n] = in[2]->data[c];
    out[0].data[n] = -out[1].data[n] * in[0]->data[n * classes + c];
  }
}

void nll_grad_reference(const OpCall& call, const std::vector<const HostTensor*>& in,
                        std::vector<HostTensor>& out) {
  const auto classes = static_cast<size_t>(call.in[0].shape[1]);
  for (size_t n = 0; n < in[1]->data.size(); ++n) {
    const auto label = static_cast<int64_t>(in[1]->data[n]);
    const Label kind = kind_of(call, label);
    double* dx = out[0].data.data() + n * classes;
    std::fill(dx, dx + classes, kind == Label::kOutside ? kNan : 0);
    if (kind != Label::kClass) continue;
    const double weight = in.size() > 3 ? in[3]->data[static_cast<size_t>(label)] : 1;
    dx[label] = -weight * in[2]->data[n];
  }
}

// A case of logits of this shape; the weights' input follows if `weighted`.
OpCase loss_case(const Shape& shape, bool with_dloss, bool weighted) {
  OpCase c;
  c.in = {{DType::kF32, shape}, {DType::kI32, {shape[0]}}};
  if (with_dloss) c.in.push_back({DType::kF32, {shape[0]}});
  if (weighted) c.in.push_back({DType::kF32, {shape[1]}});
  c.int_high = {0, shape[1]};
  c.low = -4;
  c.high = 4;
  return c;
}

std::vector<OpCase> loss_cases(bool with_dloss, bool smoothed) {
  std::vector<OpCase> cases;
  const std::vector<Shape> shapes = {{1, 1}, {1, 7}, {5, 3}, {13, 17}, {64, 10}, {0, 3}, {3, 1031}};
  for (const Shape& shape : shapes) {
    for (const int64_t ignore : {kIgnore, int64_t{0}}) {
      OpCase c = loss_case(shape, with_dloss, ignore == 0);
      c.attrs = {{"ignore_index", ignore}};
      if (ignore == 0) c.note = "class 0 is ignored; class weights";
      std::vector<double> weights;
      for (int64_t k = 0; k < shape[1]; ++k) {
        weights.push_back(0.25 + 0.125 * static_cast<double>(k % 9));
      }
      if (ignore == 0) c.fixed = {{c.in.size() - 1, weights}};
      cases.push_back(c);
      if (!smoothed || shape[0] == 64) continue;
      c.attrs.set("label_smoothing", 0.25);
      c.tolerance = 1e-5;
      c.note += "; the smoothed part sums up all classes";
      cases.push_back(c);
    }
  }
  OpCase c = loss_case({4, 3}, with_dloss, false);
  c.low = 200;
  c.high = 210;
  c.fixed = {{1, {2, static_cast<double>(kIgnore), 0, static_cast<double>(kIgnore)}}};
  c.note = "exp(200) overflows f32; two labels are ignored";
  cases.push_back(c);
  return cases;
}

// The loss and the logits' gradient in one, from what the gradient takes.
OpRow both_row(const OpRow& loss, const OpRow& grad) {
  OpRow row = grad;
  row.name = loss.name + "_with_grad";
  row.infer = [infer = grad.infer](const OpCall& call) -> std::vector<TensorDesc> {
    const TensorDesc per_row{DType::kF32, call.in[1].shape};
    return {per_row, per_row, infer(call)[0]};
  };
  row.reference = [](const OpCall& call, const std::vector<const HostTensor*>& in,
                     std::vector<HostTensor>& out) {
    std::vector<const HostTensor*> of_loss = {in[0], in[1]};
    if (in.size() > 3) of_loss.push_back(in[3]);
    cross_entropy_reference(call, of_loss, out);
    std::vector<HostTensor> dx = {std::move(out[2])};
    cross_entropy_grad_reference(call, in, dx);
    out[2] = std::move(dx[0]);
  };
  row.doc = {"outputs loss, weight and dlogits: " + loss.name + " and its gradient in one", "", ""};
  return row;
}

void add_loss(std::vector<OpRow>& rows, const std::string& name, bool smoothed, OpDoc doc) {
  OpRow loss;
  loss.name = name;
  loss.min_in = 2;
  loss.max_in = 3;
  loss.half_storage = true;
  loss.autocast = Autocast::kFull;
  loss.always_f32 = loss.constants = {2};
  loss.attrs = {{"ignore_index", kIgnore}};
  if (smoothed) loss.attrs.push_back({"label_smoothing", 0.0});
  loss.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    check_loss_inputs(call, 2);
    const TensorDesc per_row{DType::kF32, Shape{call.in[0].shape[0]}};
    return {per_row, per_row};
  };
  loss.facts = loss_facts;
  loss.gradient = [name](const GradCall& c) -> Grads {
    Grads out(c.node.in.size());
    if (!c.dy[0]) return out;  // the weights do not depend on the logits
    std::vector<ValueId> operands = {c.node.in[0], c.node.in[1], *c.dy[0]};
    if (c.node.in.size() > 2) operands.push_back(c.node.in[2]);
    out[0] = c.recorder.call(name + "_grad", operands, c.node.attrs);
    return out;
  };
  loss.reference = smoothed ? cross_entropy_reference : nll_reference;
  loss.cases = loss_cases(false, smoothed);
  loss.doc = std::move(doc);

  OpRow grad;
  grad.name = name + "_grad";
  grad.min_in = 3;
  grad.max_in = 4;
  grad.half_storage = true;
  grad.always_f32 = {2, 3};
  grad.attrs = loss.attrs;
  grad.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    check_loss_inputs(call, 3);
    require_desc(call, 2, {DType::kF32, call.in[1].shape}, "gradient of the losses");
    return {call.in[0]};
  };
  grad.facts = loss_facts;
  grad.reference = smoothed ? cross_entropy_grad_reference : nll_grad_reference;
  grad.cases = loss_cases(true, smoothed);
  grad.doc = {"the logits' gradient of " + name, "", ""};
  if (smoothed) rows.push_back(both_row(loss, grad));
  rows.push_back(std::move(loss));
  rows.push_back(std::move(grad));
}

}  // namespace

void add_cross_entropy_rows(std::vector<OpRow>& rows) {
  add_loss(rows, "cross_entropy", true,
           {"loss = -(1 - e) w[label] log p[label] - e / C sum_c w[c] log p[c], weight = w[label]; "
            "p = softmax(logits), e = label_smoothing; both 0 for an ignored label",
            "dlogits = dloss ((1 - e) w[label] (p - [label]) + e / C (sum(w) p - w))",
            "Szegedy et al.: Rethinking the Inception Architecture, CVPR 2016 (smoothing)"});
  add_loss(rows, "nll", false,
           {"loss = -w[label] x[label], weight = w[label]; both 0 for an ignored label",
            "dx = -w[label] dloss at the label, else 0", ""});
}

}  // namespace netcl
