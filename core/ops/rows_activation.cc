// Rows of the activations and of their backward ops. relu, tanh and sigmoid take the gradient from
// the output y, so that x need not be kept; the others from x. Backward ops take (dy, y) or (dy,
// x).
#include <cmath>

#include "core/ops/elementwise.h"
#include "core/ops/gradients.h"
#include "core/ops/rows.h"

namespace netcl {

namespace {

using Eval = double (*)(const double*, const double*);

constexpr double kSqrtHalf = 0.70710678118654752440;     // 1 / sqrt(2)
constexpr double kInvSqrt2Pi = 0.39894228040143267794;   // 1 / sqrt(2 pi)
constexpr double kSqrt2OverPi = 0.79788456080286535588;  // sqrt(2 / pi)
constexpr double kGeluCubic = 0.044715;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Activation {
  std::string name, expression;
  Eval eval;
  std::string grad_expression;  // over x0 = dy and x1 = y or x
  Eval grad_eval;
  bool from_output = false;
  double low = -4, high = 4;
  std::string note = "";
  std::vector<AttrRule> attrs = {};
  Attrs case_attrs = {};
};

void add_activation(std::vector<OpRow>& rows, const Activation& a) {
  ElementwiseSpec spec;
  spec.name = a.name;
  spec.expression = a.expression;
  spec.eval = a.eval;
  spec.attrs = a.attrs;
  const std::string grad_name = a.name + "_grad";
  spec.gradient = a.from_output ? grad_from_output(grad_name) : grad_from_input(grad_name);
  spec.cases = unary_cases(a.low, a.high, a.note, a.case_attrs);
  if (!a.attrs.empty()) spec.cases.push_back(unary_cases(a.low, a.high, "defaults")[2]);
  rows.push_back(elementwise_row(std::move(spec)));

  ElementwiseSpec grad;
  grad.name = grad_name;
  grad.num_in = 2;
  grad.expression = a.grad_expression;
  grad.eval = a.grad_eval;
  grad.attrs = a.attrs;
  const double low = a.from_output ? -1 : a.low, high = a.from_output ? 1 : a.high;
  grad.cases = pair_cases(low, high, a.note, a.case_attrs);
  rows.push_back(elementwise_row(std::move(grad)));
}

const char kKink[] = "the kink is a point that random values miss";

void add_output_rows(std::vector<OpRow>& rows) {
  Activation relu{"relu", "(x0 < 0.0f ? 0.0f : x0)",
                  [](const double* x, const double*) { return x[0] < 0 ? 0 : x[0]; },
                  "(x1 > 0.0f ? x0 : 0.0f)",
                  [](const double* x, const double*) { return x[1] > 0 ? x[0] : 0; }};
  relu.from_output = true;
  relu.note = kKink;
  add_activation(rows, relu);

  Activation tanh_{"tanh", "tanh(x0)",
                   [](const double* x, const double*) { return std::tanh(x[0]); },
                   "(x0 * (1.0f - x1 * x1))",
                   [](const double* x, const double*) { return x[0] * (1 - x[1] * x[1]); }};
  tanh_.from_output = true;
  add_activation(rows, tanh_);

  Activation sig{"sigmoid", "(1.0f / (1.0f + exp(-x0)))",
                 [](const double* x, const double*) { return sigmoid(x[0]); },
                 "(x0 * x1 * (1.0f - x1))",
                 [](const double* x, const double*) { return x[0] * x[1] * (1 - x[1]); }};
  sig.from_output = true;
  add_activation(rows, sig);
}

void add_parameter_rows(std::vector<OpRow>& rows) {
  Activation leaky{"leaky_relu", "(x0 > 0.0f ? x0 : p0 * x0)",
                   [](const double* x, const double* p) { return x[0] > 0 ? x[0] : p[0] * x[0]; },
                   "(x1 > 0.0f ? x0 : p0 * x0)",
                   [](const double* x, const double* p) { return x[1] > 0 ? x[0] : p[0] * x[0]; }};
  leaky.attrs = {{"slope", 0.01}};
  leaky.case_attrs = {{"slope", 0.2}};
  leaky.note = kKink;
  add_activation(rows, leaky);

  Activation elu{
      "elu", "(x0 > 0.0f ? x0 : p0 * expm1(x0))",
      [](const double* x, const double* p) { return x[0] > 0 ? x[0] : p[0] * std::expm1(x[0]); },
      "(x1 > 0.0f ? x0 : x0 * p0 * exp(x1))",
      [](const double* x, const double* p) {
        return x[1] > 0 ? x[0] : x[0] * p[0] * std::exp(x[1]);
      }};
  elu.attrs = {{"alpha", 1.0}};
  elu.case_attrs = {{"alpha", 0.75}};
  elu.note = kKink;
  add_activation(rows, elu);
}

// Source: Hendrycks & Gimpel, "Gaussian Error Linear Units", 2016 (exact form and tanh form).
void add_gelu_rows(std::vector<OpRow>& rows) {
  add_activation(rows, {"gelu", "(x0 * normal_cdf(x0))",
                        [](const double* x, const double*) {
                          return 0.5 * x[0] * (1 + std::erf(x[0] * kSqrtHalf));
                        },
                        "(x0 * (normal_cdf(x1) + x1 * 0.39894228f * exp(-0.5f * x1 * x1)))",
                        [](const double* x, const double*) {
                          const double cdf = 0.5 * (1 + std::erf(x[1] * kSqrtHalf));
                          return x[0] * (cdf + x[1] * kInvSqrt2Pi * std::exp(-0.5 * x[1] * x[1]));
                        }});
  const std::string t = "tanh(0.79788456f * (x1 + 0.044715f * x1 * x1 * x1))";
  add_activation(
      rows,
      {"gelu_tanh", "(0.5f * x0 * (1.0f + tanh(0.79788456f * (x0 + 0.044715f * x0 * x0 * x0))))",
       [](const double* x, const double*) {
         const double u = kSqrt2OverPi * (x[0] + kGeluCubic * x[0] * x[0] * x[0]);
         return 0.5 * x[0] * (1 + std::tanh(u));
       },
       "(x0 * 0.5f * (1.0f + " + t + ") * (1.0f + x1 * (1.0f - " + t +
           ") * 0.79788456f * (1.0f + 0.134145f * x1 * x1)))",
       [](const double* x, const double*) {
         const double u = kSqrt2OverPi * (x[1] + kGeluCubic * x[1] * x[1] * x[1]);
         const double th = std::tanh(u);
         const double du = kSqrt2OverPi * (1 + 3 * kGeluCubic * x[1] * x[1]);
         return x[0] * 0.5 * ((1 + th) + x[1] * (1 - th * th) * du);
       }});
}

void add_smooth_rows(std::vector<OpRow>& rows) {
  add_activation(rows, {"silu", "(x0 / (1.0f + exp(-x0)))",
                        [](const double* x, const double*) { return x[0] * sigmoid(x[0]); },
                        // 1 - sigmoid(x) = 1 / (1 + exp(x))
                        "(x0 / (1.0f + exp(-x1)) * (1.0f + x1 / (1.0f + exp(x1))))",
                        [](const double* x, const double*) {
                          const double s = sigmoid(x[1]);
                          return x[0] * s * (1 + x[1] * (1 - s));
                        }});
  // Written so that exp cannot overflow.
  add_activation(rows, {"softplus", "(fmax(x0, 0.0f) + log1p(exp(-fabs(x0))))",
                        [](const double* x, const double*) {
                          return std::fmax(x[0], 0) + std::log1p(std::exp(-std::fabs(x[0])));
                        },
                        "(x0 / (1.0f + exp(-x1)))",
                        [](const double* x, const double*) { return x[0] * sigmoid(x[1]); }});
  // x tanh(softplus(x)) and its slope t + x (1 - t^2) sigmoid(x), t = tanh(softplus(x)).
  const std::string soft = "tanh(fmax(x1, 0.0f) + log1p(exp(-fabs(x1))))";
  add_activation(
      rows,
      {"mish", "(x0 * tanh(fmax(x0, 0.0f) + log1p(exp(-fabs(x0)))))",
       [](const double* x, const double*) {
         return x[0] * std::tanh(std::fmax(x[0], 0) + std::log1p(std::exp(-std::fabs(x[0]))));
       },
       "(x0 * (" + soft + " + x1 * (1.0f - " + soft + " * " + soft + ") / (1.0f + exp(-x1))))",
       [](const double* x, const double*) {
         const double t = std::tanh(std::fmax(x[1], 0) + std::log1p(std::exp(-std::fabs(x[1]))));
         return x[0] * (t + x[1] * (1 - t * t) * sigmoid(x[1]));
       }});
  Activation hard{"hardswish", "(x0 * fmin(fmax(x0 + 3.0f, 0.0f), 6.0f) / 6.0f)",
                  [](const double* x, const double*) {
                    return x[0] * std::fmin(std::fmax(x[0] + 3, 0), 6) / 6;
                  },
                  "(x1 <= -3.0f ? 0.0f : (x1 >= 3.0f ? x0 : x0 * (x1 / 3.0f + 0.5f)))",
                  [](const double* x, const double*) {
                    return x[1] <= -3 ? 0 : x[1] >= 3 ? x[0] : x[0] * (x[1] / 3 + 0.5);
                  }};
  hard.note = "the kinks at -3 and 3 are points that random values miss";
  add_activation(rows, hard);
  Activation gate{
      "hardsigmoid", "(fmin(fmax(x0 + 3.0f, 0.0f), 6.0f) / 6.0f)",
      [](const double* x, const double*) { return std::fmin(std::fmax(x[0] + 3, 0), 6) / 6; },
      "(x1 > -3.0f && x1 < 3.0f ? x0 / 6.0f : 0.0f)",
      [](const double* x, const double*) { return x[1] > -3 && x[1] < 3 ? x[0] / 6 : 0; }};
  gate.note = hard.note;
  add_activation(rows, gate);
}

}  // namespace

void add_activation_rows(std::vector<OpRow>& rows) {
  add_output_rows(rows);
  add_parameter_rows(rows);
  add_gelu_rows(rows);
  add_smooth_rows(rows);
}

}  // namespace netcl
