// Rows of the elementwise ops with two or three inputs. All broadcast; gradients are summed back
// over the stretched axes.
#include <cmath>

#include "core/base/error.h"
#include "core/ops/elementwise.h"
#include "core/ops/gradients.h"
#include "core/ops/rows.h"

namespace netcl {

namespace {

using Eval = double (*)(const double*, const double*);
using Rule = std::function<Grads(const GradCall&)>;
// Records the gradient for one input at the output's shape.
using Part = ValueId (*)(const GradCall&);

ValueId bin(const GradCall& c, const char* op, ValueId a, ValueId b) {
  return c.recorder.call(op, {a, b});
}

ValueId zero(const GradCall& c) {
  return c.recorder.call("full", {},
                         {{"shape", Shape{}},
                          {"value", 0.0},
                          {"dtype", std::string(dtype_name(c.recorder.desc(dy0(c)).dtype))}});
}

// The rule made of one part per input; parts of inputs that need nothing are not recorded.
Rule parts(std::vector<Part> per_input) {
  return [per_input](const GradCall& c) -> Grads {
    Grads out(per_input.size());
    for (size_t i = 0; i < per_input.size(); ++i) {
      if (!c.needed[i] || per_input[i] == nullptr || !is_float(c.in_desc(i).dtype)) continue;
      out[i] = reduce_to(c.recorder, per_input[i](c), c.in_desc(i).shape);
    }
    return out;
  };
}

OpRow binary(const std::string& name, const std::string& expression, Eval eval, Rule gradient,
             std::vector<OpCase> cases, ElementwiseType type = ElementwiseType::kFloat) {
  ElementwiseSpec spec;
  spec.name = name;
  spec.num_in = 2;
  spec.expression = expression;
  spec.eval = eval;
  spec.gradient = std::move(gradient);
  spec.cases = std::move(cases);
  spec.type = type;
  return elementwise_row(std::move(spec));
}

// Adds integer and mixed cases.
std::vector<OpCase> with_integers(std::vector<OpCase> cases) {
  OpCase c;
  c.in = {{DType::kI32, {3, 7}}, {DType::kI32, {7}}};
  c.int_high = {100, 100};
  cases.push_back(c);
  c.in = {{DType::kI32, {3, 1}}, {DType::kU8, {5}}};
  cases.push_back(c);
  c.in = {{DType::kF32, {3, 7}}, {DType::kI32, {7}}};
  c.low = -50;
  c.high = 50;
  cases.push_back(c);
  return cases;
}

void add_arithmetic_rows(std::vector<OpRow>& rows) {
  rows.push_back(binary(
      "add", "(x0 + x1)", [](const double* x, const double*) { return x[0] + x[1]; },
      parts({dy0, dy0}), with_integers(binary_cases(-2, 2)), ElementwiseType::kNumber));
  rows.push_back(binary(
      "sub", "(x0 - x1)", [](const double* x, const double*) { return x[0] - x[1]; },
      parts({dy0, [](const GradCall& c) { return c.recorder.call("neg", {dy0(c)}); }}),
      with_integers(binary_cases(-2, 2)), ElementwiseType::kNumber));
  rows.push_back(binary(
      "mul", "(x0 * x1)", [](const double* x, const double*) { return x[0] * x[1]; },
      parts({[](const GradCall& c) { return bin(c, "mul", dy0(c), c.node.in[1]); },
             [](const GradCall& c) { return bin(c, "mul", dy0(c), c.node.in[0]); }}),
      with_integers(binary_cases(-2, 2)), ElementwiseType::kNumber));
  rows.push_back(binary(
      "div", "(x0 / x1)", [](const double* x, const double*) { return x[0] / x[1]; },
      parts({[](const GradCall& c) { return bin(c, "div", dy0(c), c.node.in[1]); },
             [](const GradCall& c) {  // -dy * y / b
               const ValueId slope = bin(c, "div", c.node.out[0], c.node.in[1]);
               return c.recorder.call("neg", {bin(c, "mul", dy0(c), slope)});
             }}),
      binary_cases(0.5, 2, "away from the pole at 0")));
  rows.push_back(binary(
      "pow", "pow(x0, x1)", [](const double* x, const double*) { return std::pow(x[0], x[1]); },
      parts({[](const GradCall& c) {  // dy * b * a^(b - 1)
               const ValueId less_one = scaled(c.recorder, c.node.in[1], 1, -1);
               const ValueId power = bin(c, "pow", c.node.in[0], less_one);
               return bin(c, "mul", dy0(c), bin(c, "mul", c.node.in[1], power));
             },
             [](const GradCall& c) {  // dy * y * log(a)
               const ValueId log_a = c.recorder.call("log", {c.node.in[0]});
               return bin(c, "mul", dy0(c), bin(c, "mul", c.node.out[0], log_a));
             }}),
      binary_cases(0.5, 2, "a positive base: the exponent's gradient needs its logarithm")));
}

void add_choice_rows(std::vector<OpRow>& rows) {
  const std::string note = "ties, where the slope jumps, are points that random values miss";
  // At a tie the first input gets the whole gradient.
  rows.push_back(binary(
      "max", "(x0 >= x1 || x0 != x0 ? x0 : x1)",
      [](const double* x, const double*) { return x[0] >= x[1] || x[0] != x[0] ? x[0] : x[1]; },
      parts({[](const GradCall& c) {
               const ValueId other = bin(c, "less", c.node.in[0], c.node.in[1]);
               return c.recorder.call("where", {other, zero(c), dy0(c)});
             },
             [](const GradCall& c) {
               const ValueId mine = bin(c, "less", c.node.in[0], c.node.in[1]);
               return c.recorder.call("where", {mine, dy0(c), zero(c)});
             }}),
      with_integers(binary_cases(-2, 2, note)), ElementwiseType::kNumber));
  rows.push_back(binary(
      "min", "(x0 <= x1 || x0 != x0 ? x0 : x1)",
      [](const double* x, const double*) { return x[0] <= x[1] || x[0] != x[0] ? x[0] : x[1]; },
      parts({[](const GradCall& c) {
               const ValueId other = bin(c, "less", c.node.in[1], c.node.in[0]);
               return c.recorder.call("where", {other, zero(c), dy0(c)});
             },
             [](const GradCall& c) {
               const ValueId mine = bin(c, "less", c.node.in[1], c.node.in[0]);
               return c.recorder.call("where", {mine, dy0(c), zero(c)});
             }}),
      with_integers(binary_cases(-2, 2, note)), ElementwiseType::kNumber));
}

void add_compare_rows(std::vector<OpRow>& rows) {
  std::vector<OpCase> cases = with_integers(binary_cases(-2, 2));
  OpCase small;  // few values, so that equal pairs occur
  small.in = {{DType::kI32, {13, 17}}, {DType::kI32, {17}}};
  small.int_high = {3, 3};
  cases.push_back(small);
  rows.push_back(binary(
      "equal", "(x0 == x1)",
      [](const double* x, const double*) { return x[0] == x[1] ? 1.0 : 0.0; }, nullptr, cases,
      ElementwiseType::kCompare));
  rows.push_back(binary(
      "less", "(x0 < x1)", [](const double* x, const double*) { return x[0] < x[1] ? 1.0 : 0.0; },
      nullptr, cases, ElementwiseType::kCompare));
  rows.push_back(binary(
      "not_equal", "(x0 != x1)",
      [](const double* x, const double*) { return x[0] != x[1] ? 1.0 : 0.0; }, nullptr, cases,
      ElementwiseType::kCompare));
  rows.push_back(binary(
      "less_equal", "(x0 <= x1)",
      [](const double* x, const double*) { return x[0] <= x[1] ? 1.0 : 0.0; }, nullptr, cases,
      ElementwiseType::kCompare));
  rows.push_back(binary(
      "greater", "(x0 > x1)",
      [](const double* x, const double*) { return x[0] > x[1] ? 1.0 : 0.0; }, nullptr, cases,
      ElementwiseType::kCompare));
  rows.push_back(binary(
      "greater_equal", "(x0 >= x1)",
      [](const double* x, const double*) { return x[0] >= x[1] ? 1.0 : 0.0; }, nullptr, cases,
      ElementwiseType::kCompare));
}

void add_where_row(std::vector<OpRow>& rows) {
  ElementwiseSpec spec;
  spec.name = "where";
  spec.num_in = 3;
  spec.expression = "(x0 != 0 ? x1 : x2)";
  spec.eval = [](const double* x, const double*) { return x[0] != 0 ? x[1] : x[2]; };
  spec.type = ElementwiseType::kNumber;
  spec.gradient = parts({nullptr,
                         [](const GradCall& c) {
                           return c.recorder.call("where", {c.node.in[0], dy0(c), zero(c)});
                         },
                         [](const GradCall& c) {
                           return c.recorder.call("where", {c.node.in[0], zero(c), dy0(c)});
                         }});
  const std::vector<std::vector<Shape>> shapes = {{{1}, {1}, {1}},         {{7}, {7}, {7}},
                                                  {{3, 5}, {}, {5}},       {{5, 1}, {1, 3}, {5, 3}},
                                                  {{4, 1}, {3, 1, 5}, {}}, {{0, 3}, {0, 3}, {1, 3}},
                                                  {{1031}, {1031}, {1031}}};
  for (const std::vector<Shape>& s : shapes) {
    OpCase c;
    c.in = {{DType::kBool, s[0]}, {DType::kF32, s[1]}, {DType::kF32, s[2]}};
    c.int_high = {2};
    spec.cases.push_back(c);
  }
  OpCase integers;
  integers.in = {{DType::kU8, {3, 7}}, {DType::kI32, {7}}, {DType::kI32, {3, 1}}};
  integers.int_high = {2, 50, 50};
  spec.cases.push_back(integers);
  OpRow row = elementwise_row(std::move(spec));
  row.infer = [infer = row.infer](const OpCall& call) {
    NETCL_CHECK(call.in[0].dtype == DType::kU8 || call.in[0].dtype == DType::kBool,
                ErrorCode::kUsage, "the condition must be bool or u8; compare, or cast it");
    return infer(call);
  };
  rows.push_back(std::move(row));
}

}  // namespace

void add_binary_rows(std::vector<OpRow>& rows) {
  add_arithmetic_rows(rows);
  add_choice_rows(rows);
  add_compare_rows(rows);
  add_where_row(rows);
}

}  // namespace netcl
