// Rows of the elementwise losses: x0 is the prediction, x1 the target; nothing is summed up.
#include <cmath>

#include "core/base/error.h"
#include "core/ops/elementwise.h"
#include "core/ops/gradients.h"
#include "core/ops/rows.h"

namespace netcl {

namespace {

using Eval = double (*)(const double*, const double*);

// Losses of d = x0 - x1 with a backward op of three inputs: dy, x, target.
struct Difference {
  std::string name, expression;
  Eval eval;
  std::string grad_expression;  // d/dx0 times dy, over x0 = dy, x1, x2
  Eval grad_eval;
  std::vector<AttrRule> attrs;
  Attrs case_attrs;
  std::string note;
  OpDoc doc;
};

std::vector<OpCase> triple_cases(const Attrs& attrs, const std::string& note) {
  std::vector<OpCase> out;
  for (OpCase c : pair_cases(-2, 2, note, attrs)) {
    c.in.push_back(c.in[0]);
    out.push_back(std::move(c));
  }
  return out;
}

void add_difference(std::vector<OpRow>& rows, const Difference& d) {
  const std::string grad_name = d.name + "_grad";
  ElementwiseSpec spec;
  spec.name = d.name;
  spec.num_in = 2;
  spec.expression = d.expression;
  spec.eval = d.eval;
  spec.attrs = d.attrs;
  spec.gradient = [grad_name](const GradCall& c) -> Grads {
    Recorder& r = c.recorder;
    const Shape x = c.in_desc(0).shape, target = c.in_desc(1).shape;
    const ValueId dx = r.call(grad_name, {dy0(c), c.node.in[0], c.node.in[1]}, c.node.attrs);
    Grads out(2);
    if (c.needed[0]) out[0] = reduce_to(r, dx, x);
    if (c.needed[1]) out[1] = reduce_to(r, r.call("neg", {dx}), target);
    return out;
  };
  spec.cases = binary_cases(-2, 2, d.note);
  for (OpCase& c : spec.cases) c.attrs = d.case_attrs;
  OpRow row = elementwise_row(std::move(spec));
  row.autocast = Autocast::kFull;
  row.doc = d.doc;
  rows.push_back(std::move(row));

  ElementwiseSpec grad;
  grad.name = grad_name;
  grad.num_in = 3;
  grad.expression = d.grad_expression;
  grad.eval = d.grad_eval;
  grad.attrs = d.attrs;
  grad.cases = triple_cases(d.case_attrs, d.note);
  rows.push_back(elementwise_row(std::move(grad)));
}

double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

void add_difference_rows(std::vector<OpRow>& rows) {
  const std::string kink = "the kinks are points that random values miss";
  add_difference(rows,
                 {"mse",
                  "((x0 - x1) * (x0 - x1))",
                  [](const double* x, const double*) { return (x[0] - x[1]) * (x[0] - x[1]); },
                  "(2.0f * x0 * (x1 - x2))",
                  [](const double* x, const double*) { return 2 * x[0] * (x[1] - x[2]); },
                  {},
                  {},
                  "",
                  {"(x - t)^2", "dx = 2 dy (x - t), dt = -dx", ""}});
  add_difference(rows, {"l1",
                        "fabs(x0 - x1)",
                        [](const double* x, const double*) { return std::fabs(x[0] - x[1]); },
                        "(x0 * (float)((x1 > x2) - (x1 < x2)))",
                        [](const double* x, const double*) { return x[0] * sign(x[1] - x[2]); },
                        {},
                        {},
                        kink,
                        {"|x - t|", "dx = dy sign(x - t), dt = -dx", ""}});
  add_difference(
      rows, {"smooth_l1",
             "(fabs(x0 - x1) < p0 ? 0.5f * (x0 - x1) * (x0 - x1) / p0 : fabs(x0 - x1) - 0.5f * p0)",
             [](const double* x, const double* p) {
               const double d = std::fabs(x[0] - x[1]);
               return d < p[0] ? 0.5 * d * d / p[0] : d - 0.5 * p[0];
             },
             "(fabs(x1 - x2) < p0 ? x0 * (x1 - x2) / p0 : x0 * (float)((x1 > x2) - (x1 < x2)))",
             [](const double* x, const double* p) {
               const double d = x[1] - x[2];
               return x[0] * (std::fabs(d) < p[0] ? d / p[0] : sign(d));
             },
             {{"beta", 1.0}},
             {{"beta", 0.75}},
             kink,
             {"d^2 / (2 beta) if |d| < beta, else |d| - beta / 2; d = x - t",
              "dx = dy d / beta or dy sign(d), dt = -dx", "Girshick: Fast R-CNN, ICCV 2015"}});
  add_difference(
      rows,
      {"huber",
       "(fabs(x0 - x1) <= p0 ? 0.5f * (x0 - x1) * (x0 - x1) : p0 * (fabs(x0 - x1) - 0.5f * p0))",
       [](const double* x, const double* p) {
         const double d = std::fabs(x[0] - x[1]);
         return d <= p[0] ? 0.5 * d * d : p[0] * (d - 0.5 * p[0]);
       },
       "(x0 * fmin(fmax(x1 - x2, -p0), p0))",
       [](const double* x, const double* p) {
         return x[0] * std::fmin(std::fmax(x[1] - x[2], -p[0]), p[0]);
       },
       {{"delta", 1.0}},
       {{"delta", 0.75}},
       kink,
       {"d^2 / 2 if |d| <= delta, else delta (|d| - delta / 2); d = x - t",
        "dx = dy clamp(d, -delta, delta), dt = -dx",
        "Huber: Robust Estimation of a Location Parameter, 1964"}});
}

double softplus(double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }

// Two inputs, or three: the weight of positive targets, broadcast like the others. The family's
// facts hold one expression; which one says the number of inputs.
OpRow optional_weight_row(const std::string& name, const std::string& expression, Eval eval,
                          const std::string& weighted, Eval weighted_eval) {
  ElementwiseSpec spec;
  spec.name = name;
  spec.num_in = 3;
  spec.expression = expression;
  spec.eval = eval;
  OpRow row = elementwise_row(std::move(spec));
  row.autocast = Autocast::kFull;
  row.min_in = 2;
  row.facts = [weighted](const OpCall& call, Attrs& facts) {
    elementwise_facts(call, broadcast_strides, facts);
    if (call.in.size() == 3) facts.set("expr", weighted);
  };
  row.reference = [eval, weighted_eval](const OpCall& call,
                                        const std::vector<const HostTensor*>& in,
                                        std::vector<HostTensor>& out) {
    elementwise_reference(call, broadcast_strides, in.size() == 3 ? weighted_eval : eval, in, out);
  };
  const std::vector<std::vector<Shape>> shapes = {{{1}, {1}},
                                                  {{7}, {7}},
                                                  {{13, 17}, {13, 17}},
                                                  {{0, 3}, {0, 3}},
                                                  {{3, 5}, {5}},
                                                  {{3, 5}, {3, 5}, {}},
                                                  {{4, 3, 5}, {4, 3, 5}, {5}},
                                                  {{1031}, {1031}, {1}},
                                                  {{5, 1}, {1, 3}, {3}}};
  for (const std::vector<Shape>& list : shapes) {
    OpCase c;
    for (const Shape& shape : list) c.in.push_back({DType::kF32, shape});
    c.low = -1.5;
    c.high = 2;
    row.cases.push_back(c);
  }
  OpCase large;
  large.in.assign(2, {DType::kF32, Shape{5}});
  large.fixed = {{0, {-200, 200, -88, 89, 0.5}}, {1, {0, 1, 1, 0, 0.25}}};
  large.note = "exp(200) overflows f32";
  row.cases.push_back(large);
  return row;
}

// loss = (1 - t) x + q softplus(-x) with q = 1 + (w - 1) t; without w, q is 1.
void add_bce_rows(std::vector<OpRow>& rows) {
  const std::string soft = "(fmax(-x0, 0.0f) + log1p(exp(-fabs(x0))))";  // softplus(-x0)
  OpRow row = optional_weight_row(
      "bce_with_logits", "((1.0f - x1) * x0 + " + soft + ")",
      [](const double* x, const double*) { return (1 - x[1]) * x[0] + softplus(-x[0]); },
      "((1.0f - x1) * x0 + (1.0f + (x2 - 1.0f) * x1) * " + soft + ")",
      [](const double* x, const double*) {
        return (1 - x[1]) * x[0] + (1 + (x[2] - 1) * x[1]) * softplus(-x[0]);
      });
  row.gradient = [](const GradCall& c) -> Grads {
    Recorder& r = c.recorder;
    const std::vector<ValueId> in = c.node.in;
    const ValueId dy = dy0(c);
    Grads out(in.size());
    const auto put = [&](size_t i, ValueId slope) {
      const Shape shape = r.desc(in[i]).shape;
      out[i] = reduce_to(r, r.call("mul", {dy, slope}), shape);
    };
    if (c.needed[0]) put(0, r.call("bce_with_logits_slope", in));
    const bool weighted = in.size() > 2;
    if (!c.needed[1] && !(weighted && c.needed[2])) return out;
    const ValueId minus_x = r.call("neg", {in[0]});
    if (!weighted) {
      put(1, minus_x);
      return out;
    }
    const ValueId soft_minus = r.call("softplus", {minus_x});
    if (c.needed[1]) {
      const ValueId more = scaled(r, in[2], 1, -1);
      put(1, r.call("add", {r.call("mul", {more, soft_minus}), minus_x}));
    }
    if (c.needed[2]) put(2, r.call("mul", {in[1], soft_minus}));
    return out;
  };
  row.doc = {"(1 - t) x + q softplus(-x), q = 1 + (pos_weight - 1) t; q = 1 without pos_weight",
             "dx = dy ((1 - t) - q sigmoid(-x)), dt = dy ((pos_weight - 1) softplus(-x) - x)", ""};
  rows.push_back(std::move(row));
  // sigmoid(-x) = 1 / (1 + exp(x))
  rows.push_back(optional_weight_row(
      "bce_with_logits_slope", "(1.0f - x1 - 1.0f / (1.0f + exp(x0)))",
      [](const double* x, const double*) { return 1 - x[1] - 1 / (1 + std::exp(x[0])); },
      "(1.0f - x1 - (1.0f + (x2 - 1.0f) * x1) / (1.0f + exp(x0)))",
      [](const double* x, const double*) {
        return 1 - x[1] - (1 + (x[2] - 1) * x[1]) / (1 + std::exp(x[0]));
      }));
}

// x is the logarithm of a probability, t a probability.
void add_kl_row(std::vector<OpRow>& rows) {
  ElementwiseSpec spec;
  spec.name = "kl_div";
  spec.num_in = 2;
  spec.expression = "(x1 > 0.0f ? x1 * (log(x1) - x0) : 0.0f)";
  spec.eval = [](const double* x, const double*) {
    return x[1] > 0 ? x[1] * (std::log(x[1]) - x[0]) : 0.0;
  };
  spec.gradient = [](const GradCall& c) -> Grads {
    Recorder& r = c.recorder;
    const std::vector<ValueId> in = c.node.in;
    const ValueId dy = dy0(c);
    Grads out(2);
    if (c.needed[0]) {
      const Shape shape = r.desc(in[0]).shape;
      const ValueId down = r.call("neg", {r.call("clamp", {in[1]}, {{"min", 0.0}})});
      out[0] = reduce_to(r, r.call("mul", {dy, down}), shape);
    }
    if (c.needed[1]) {
      const Shape shape = r.desc(in[1]).shape;
      const ValueId slope = scaled(r, r.call("sub", {r.call("log", {in[1]}), in[0]}), 1, 1);
      out[1] = reduce_to(r, r.call("mul", {dy, slope}), shape);
    }
    return out;
  };
  spec.cases = binary_cases(0.25, 2, "a target of 0 has a pole in its gradient");
  OpRow row = elementwise_row(std::move(spec));
  row.autocast = Autocast::kFull;
  row.doc = {"t (log t - x), 0 where t is 0; x is a logarithm of a probability",
             "dx = -dy t, dt = dy (log t + 1 - x)",
             "Kullback, Leibler: On Information and Sufficiency, 1951"};
  rows.push_back(std::move(row));
}

}  // namespace

void add_loss_rows(std::vector<OpRow>& rows) {
  add_difference_rows(rows);
  add_bce_rows(rows);
  add_kl_row(rows);
}

}  // namespace netcl
