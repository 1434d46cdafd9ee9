// Rows of the unary elementwise ops that are not activations. Expressions over integers keep to
// operators that mean the same in int and float.
#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/ops/elementwise.h"
#include "core/ops/gradients.h"
#include "core/ops/rows.h"

namespace netcl {

namespace {

using Eval = double (*)(const double*, const double*);
using Rule = std::function<Grads(const GradCall&)>;

OpRow unary(const std::string& name, const std::string& expression, Eval eval, Rule gradient,
            std::vector<OpCase> cases, ElementwiseType type = ElementwiseType::kFloat) {
  ElementwiseSpec spec;
  spec.name = name;
  spec.expression = expression;
  spec.eval = eval;
  spec.gradient = std::move(gradient);
  spec.cases = std::move(cases);
  spec.type = type;
  return elementwise_row(std::move(spec));
}

std::vector<OpCase> with_integers(std::vector<OpCase> cases) {
  OpCase c;
  c.in = {{DType::kI32, {3, 7}}};
  c.int_high = {100};
  cases.push_back(c);
  return cases;
}

ValueId bin(const GradCall& c, const char* op, ValueId a, ValueId b) {
  return c.recorder.call(op, {a, b});
}

void add_number_rows(std::vector<OpRow>& rows) {
  rows.push_back(unary(
      "neg", "(-x0)", [](const double* x, const double*) { return -x[0]; },
      [](const GradCall& c) -> Grads { return {c.recorder.call("neg", {dy0(c)})}; },
      with_integers(unary_cases(-2, 2)), ElementwiseType::kNumber));
  rows.push_back(unary(
      // Not a selection: LLVM turns that into an instruction for integers that Oclgrind lacks.
      "abs", "(x0 * ((x0 > 0) - (x0 < 0)))",
      [](const double* x, const double*) { return std::fabs(x[0]); },
      [](const GradCall& c) -> Grads {
        return {bin(c, "mul", dy0(c), c.recorder.call("sign", {c.node.in[0]}))};
      },
      with_integers(unary_cases(-2, 2, "the kink at 0 is a point that random values miss")),
      ElementwiseType::kNumber));
  rows.push_back(unary(
      // Not a selection: Oclgrind converts its signed one-bit form to +1.
      "sign", "((x0 > 0) - (x0 < 0))",
      [](const double* x, const double*) { return x[0] > 0   ? 1.0
                                                  : x[0] < 0 ? -1.0
                                                             : 0.0; },
      // Constant on both sides of 0: nothing flows back.
      [](const GradCall&) -> Grads { return {std::nullopt}; },
      with_integers(unary_cases(-2, 2, "the step at 0 is a point that random values miss")),
      ElementwiseType::kNumber));
}

void add_power_rows(std::vector<OpRow>& rows) {
  rows.push_back(unary(
      "exp", "exp(x0)", [](const double* x, const double*) { return std::exp(x[0]); },
      [](const GradCall& c) -> Grads { return {bin(c, "mul", dy0(c), c.node.out[0])}; },
      unary_cases(-3, 3)));
  rows.push_back(unary(
      "log", "log(x0)", [](const double* x, const double*) { return std::log(x[0]); },
      [](const GradCall& c) -> Grads { return {bin(c, "div", dy0(c), c.node.in[0])}; },
      unary_cases(0.25, 4, "away from the pole at 0")));
  rows.push_back(unary(
      "expm1", "expm1(x0)", [](const double* x, const double*) { return std::expm1(x[0]); },
      [](const GradCall& c) -> Grads {  // y' = y + 1
        return {bin(c, "mul", dy0(c), scaled(c.recorder, c.node.out[0], 1, 1))};
      },
      unary_cases(-3, 3)));
  rows.push_back(unary(
      "log1p", "log1p(x0)", [](const double* x, const double*) { return std::log1p(x[0]); },
      [](const GradCall& c) -> Grads {
        return {bin(c, "div", dy0(c), scaled(c.recorder, c.node.in[0], 1, 1))};
      },
      unary_cases(-0.75, 4, "away from the pole at -1")));
  rows.push_back(unary(
      "sqrt", "sqrt(x0)", [](const double* x, const double*) { return std::sqrt(x[0]); },
      [](const GradCall& c) -> Grads {
        return {scaled(c.recorder, bin(c, "div", dy0(c), c.node.out[0]), 0.5)};
      },
      unary_cases(0.25, 4, "the slope has a pole at 0")));
  rows.push_back(unary(
      "rsqrt", "rsqrt(x0)", [](const double* x, const double*) { return 1 / std::sqrt(x[0]); },
      [](const GradCall& c) -> Grads {  // y' = -y^3 / 2
        const ValueId y = c.node.out[0];
        const ValueId cube = bin(c, "mul", bin(c, "mul", y, y), y);
        return {scaled(c.recorder, bin(c, "mul", dy0(c), cube), -0.5)};
      },
      unary_cases(0.25, 4, "away from the pole at 0")));
}

void add_angle_rows(std::vector<OpRow>& rows) {
  rows.push_back(unary(
      "sin", "sin(x0)", [](const double* x, const double*) { return std::sin(x[0]); },
      [](const GradCall& c) -> Grads {
        return {bin(c, "mul", dy0(c), c.recorder.call("cos", {c.node.in[0]}))};
      },
      unary_cases(-4, 4)));
  rows.push_back(unary(
      "cos", "cos(x0)", [](const double* x, const double*) { return std::cos(x[0]); },
      [](const GradCall& c) -> Grads {
        const ValueId slope = c.recorder.call("neg", {c.recorder.call("sin", {c.node.in[0]})});
        return {bin(c, "mul", dy0(c), slope)};
      },
      unary_cases(-4, 4)));
}

void add_parameter_rows(std::vector<OpRow>& rows) {
  ElementwiseSpec scale;
  scale.name = "scale";
  scale.expression = "(x0 * p0 + p1)";
  scale.eval = [](const double* x, const double* p) { return x[0] * p[0] + p[1]; };
  scale.attrs = {{"factor", 1.0}, {"offset", 0.0}};
  scale.gradient = [](const GradCall& c) -> Grads {
    return {scaled(c.recorder, dy0(c), c.node.attrs.number("factor"))};
  };
  scale.cases = unary_cases(-2, 2, "", {{"factor", 1.75}, {"offset", -0.5}});
  scale.cases.push_back(unary_cases(-2, 2)[2]);
  rows.push_back(elementwise_row(std::move(scale)));

  const std::vector<AttrRule> limits = {{"min", -3.4028234663852886e38},
                                        {"max", 3.4028234663852886e38}};
  const Attrs narrow{{"min", -0.5}, {"max", 0.75}};
  const std::string note = "the kinks at the limits are points that random values miss";
  ElementwiseSpec clamp;
  clamp.name = "clamp";
  // Where min lies above max, max counts, as in PyTorch and ONNX.
  clamp.expression = "(x0 > p1 ? p1 : (x0 < p0 ? fmin(p0, p1) : x0))";
  clamp.eval = [](const double* x, const double* p) {
    return std::min(x[0] < p[0] ? p[0] : x[0], p[1]);
  };
  clamp.attrs = limits;
  clamp.gradient = grad_from_input("clamp_grad");
  clamp.cases = unary_cases(-2, 2, note, narrow);
  clamp.cases.push_back(unary_cases(-2, 2, "one limit only", {{"min", 0.0}})[2]);
  clamp.cases.push_back(
      unary_cases(-2, 2, "limits in the wrong order", {{"min", 0.75}, {"max", -0.5}})[2]);
  rows.push_back(elementwise_row(std::move(clamp)));

  ElementwiseSpec grad;
  grad.name = "clamp_grad";
  grad.num_in = 2;
  grad.expression = "(x1 >= p0 && x1 <= p1 ? x0 : 0.0f)";
  grad.eval = [](const double* x, const double* p) {
    return x[1] >= p[0] && x[1] <= p[1] ? x[0] : 0.0;
  };
  grad.attrs = limits;
  grad.cases = pair_cases(-2, 2, note, narrow);
  rows.push_back(elementwise_row(std::move(grad)));
}

void add_cast_row(std::vector<OpRow>& rows) {
  OpRow row = unary(
      "cast", "x0", [](const double* x, const double*) { return x[0]; },
      [](const GradCall& c) -> Grads {
        if (!is_float(c.in_desc(0).dtype)) return {std::nullopt};
        return {dy0(c)};  // the walk casts it back
      },
      {});
  row.attrs = {{"dtype", std::nullopt}};
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    const std::string& name = call.attrs.text("dtype");
    return {{dtype_named(name), call.in[0].shape}};
  };
  row.reference = [](const OpCall&, const std::vector<const HostTensor*>& in,
                     std::vector<HostTensor>& out) {
    const DType to = out[0].desc.dtype;
    for (size_t i = 0; i < out[0].data.size(); ++i) {
      const double x = in[0]->data[i];
      out[0].data[i] = to == DType::kBool ? (x != 0 ? 1.0 : 0.0) : is_float(to) ? x : std::trunc(x);
    }
  };
  const std::vector<std::pair<DType, std::string>> pairs = {
      {DType::kF32, "f32"},  {DType::kF32, "i32"},  {DType::kF32, "u8"},   {DType::kI32, "f32"},
      {DType::kI32, "u8"},   {DType::kU8, "f32"},   {DType::kU8, "i32"},   {DType::kF32, "f16"},
      {DType::kF32, "bf16"}, {DType::kF32, "i64"},  {DType::kI32, "i64"},  {DType::kI64, "i32"},
      {DType::kI64, "f32"},  {DType::kF32, "bool"}, {DType::kI32, "bool"}, {DType::kBool, "f32"},
      {DType::kI32, "bf16"}, {DType::kBool, "u8"}};
  for (const auto& [from, to] : pairs) {
    OpCase c;
    c.in = {{from, {5, 7}}};
    c.attrs = {{"dtype", to}};
    c.low = to == "u8" ? 0 : -200;
    c.high = 200;
    c.int_high = {from == DType::kBool ? 2 : 200};
    c.note = "within the range of the narrower type: outside it a conversion has no defined result";
    row.cases.push_back(c);
    c.in = {{from, {0}}};
    row.cases.push_back(c);
  }
  rows.push_back(std::move(row));
}

}  // namespace

void add_unary_rows(std::vector<OpRow>& rows) {
  add_number_rows(rows);
  add_power_rows(rows);
  add_angle_rows(rows);
  add_parameter_rows(rows);
  add_cast_row(rows);
}

}  // namespace netcl
