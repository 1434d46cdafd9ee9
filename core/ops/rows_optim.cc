// Rows of the optimiser steps. They run on whole arenas (parameters and state are flat) and first
// divide the gradient by the denominator summed over all replicas.
// Source: torch.optim.SGD and torch.optim.AdamW document the order of operations followed here;
// Loshchilov & Hutter, "Decoupled weight decay regularization", 2019.
#include <cmath>

#include "core/base/error.h"
#include "core/ops/rows.h"

namespace netcl {

namespace {

// Inputs: param, grad, `states` states, hyper, divisor. Outputs: param and the states. The
// gradients begin at element grad_offset of grad, which is at least that much longer than param: so
// the arena that replicas reduce, sums and all, is passed whole.
std::vector<TensorDesc> infer_step(const OpCall& call, size_t states) {
  const Shape& shape = call.in[0].shape;
  NETCL_CHECK(shape.rank() == 1, ErrorCode::kUsage, "needs flat arenas [n]");
  for (size_t i = 0; i < call.in.size(); ++i) {
    if (i == 1) continue;
    const bool arena = i < 2 + states;
    const Shape wanted = arena ? shape : i == 2 + states ? Shape{8} : Shape{1};
    NETCL_CHECK(call.in[i].dtype == DType::kF32 && call.in[i].shape == wanted, ErrorCode::kUsage,
                "input ", i, " must be f32", wanted.str(), ", is ", call.in[i].str());
  }
  const int64_t offset = call.attrs.integer("grad_offset");
  NETCL_CHECK(call.in[1].dtype == DType::kF32 && call.in[1].shape.rank() == 1 && offset >= 0 &&
                  call.in[1].shape[0] >= shape[0] + offset,
              ErrorCode::kUsage, "input 1 must be f32 and hold ", shape.str(),
              " elements from grad_offset ", offset, " on, is ", call.in[1].str());
  return std::vector<TensorDesc>(1 + states, call.in[0]);
}

double gradient_of(const OpCall& call, const std::vector<const HostTensor*>& in, size_t i) {
  const double denominator = in.back()->data[0];
  const auto offset = static_cast<size_t>(call.attrs.integer("grad_offset"));
  return denominator == 0 ? 0 : in[1]->data[i + offset] / denominator;
}

// hyper: lr, momentum, dampening, weight decay, nesterov, first step.
void sgd_reference(const OpCall& call, const std::vector<const HostTensor*>& in,
                   std::vector<HostTensor>& out) {
  const std::vector<double>& h = in[3]->data;
  const double lr = h[0], momentum = h[1], dampening = h[2], decay = h[3];
  const bool nesterov = h[4] != 0, first = h[5] != 0;
  for (size_t i = 0; i < in[0]->data.size(); ++i) {
    const double p = in[0]->data[i];
    double g = gradient_of(call, in, i) + decay * p;
    double buffer = in[2]->data[i];
    if (momentum != 0) {
      buffer = first ? g : momentum * buffer + (1 - dampening) * g;
      g = nesterov ? g + momentum * buffer : buffer;
    }
    out[0].data[i] = p - lr * g;
    out[1].data[i] = buffer;
  }
}

// hyper: lr, beta1, beta2, epsilon, weight decay, 1 - beta1^t, 1 - beta2^t.
void adamw_reference(const OpCall& call, const std::vector<const HostTensor*>& in,
                     std::vector<HostTensor>& out) {
  const std::vector<double>& h = in[4]->data;
  const double lr = h[0], beta1 = h[1], beta2 = h[2], epsilon = h[3], decay = h[4];
  const double correction1 = h[5], correction2 = h[6];
  for (size_t i = 0; i < in[0]->data.size(); ++i) {
    const double g = gradient_of(call, in, i);
    const double p = in[0]->data[i] * (1 - lr * decay);
    const double m = in[2]->data[i] + (1 - beta1) * (g - in[2]->data[i]);
    const double v = beta2 * in[3]->data[i] + (1 - beta2) * g * g;
    const double denominator = std::sqrt(v) / std::sqrt(correction2) + epsilon;
    out[0].data[i] = p - lr / correction1 * m / denominator;
    out[1].data[i] = m;
    out[2].data[i] = v;
  }
}

OpRow step_row(const std::string& name, size_t states) {
  OpRow row;
  row.name = name;
  row.min_in = row.max_in = 4 + states;
  row.attrs = {{"grad_offset", int64_t{0}}};
  row.infer = [states](const OpCall& call) { return infer_step(call, states); };
  row.facts = [](const OpCall& call, Attrs& facts) { facts.set("n", call.in[0].shape[0]); };
  row.aliases = {0};
  for (size_t s = 0; s < states; ++s) row.aliases.push_back(static_cast<int>(2 + s));
  return row;
}

void add_cases(OpRow& row, size_t states, const std::vector<double>& hyper, double denominator,
               double low) {
  for (const int64_t n : {1, 7, 0, 1031, 4096}) {
    OpCase c;
    c.in.assign(2 + states, {DType::kF32, {n}});
    c.in.push_back({DType::kF32, {8}});
    c.in.push_back({DType::kF32, {1}});
    c.low = low;
    c.fixed = {{2 + states, hyper}, {3 + states, {denominator}}};
    row.cases.push_back(c);
  }
  OpCase sums = row.cases.back();  // gradients behind other numbers
  sums.in[1].shape = Shape{sums.in[0].shape[0] + 133};
  sums.attrs.set("grad_offset", int64_t{128});
  row.cases.push_back(sums);
}

}  // namespace

void add_optim_rows(std::vector<OpRow>& rows) {
  OpRow sgd = step_row("sgd_step", 1);
  sgd.reference = sgd_reference;
  add_cases(sgd, 1, {0.1, 0, 0, 0, 0, 0, 0, 0}, 1, -1);          // plain
  add_cases(sgd, 1, {0.1, 0, 0, 0.01, 0, 1, 0, 0}, 3, -1);       // weight decay, a denominator
  add_cases(sgd, 1, {0.1, 0.9, 0.25, 0.01, 0, 1, 0, 0}, 3, -1);  // first step: no dampening
  add_cases(sgd, 1, {0.1, 0.9, 0.25, 0.01, 0, 0, 0, 0}, 3, -1);
  add_cases(sgd, 1, {0.1, 0.9, 0, 0.01, 1, 1, 0, 0}, 3, -1);  // nesterov
  add_cases(sgd, 1, {0.1, 0.9, 0, 0.01, 1, 0, 0, 0}, 3, -1);
  add_cases(sgd, 1, {0.1, 0.9, 0, 0.01, 1, 0, 0, 0}, 0, -1);  // nobody had a sample
  rows.push_back(std::move(sgd));

  OpRow adamw = step_row("adamw_step", 2);
  adamw.reference = adamw_reference;
  // Second moments cannot be negative: inputs from [0, 1).
  const double b1 = 0.9, b2 = 0.999;
  add_cases(adamw, 2, {0.01, b1, b2, 1e-8, 0.1, 1 - b1, 1 - b2, 0}, 3, 0);
  add_cases(adamw, 2, {0.01, b1, b2, 1e-8, 0, 1 - std::pow(b1, 20), 1 - std::pow(b2, 20), 0}, 1, 0);
  add_cases(adamw, 2, {0.01, b1, b2, 1e-4, 0.1, 1 - b1, 1 - b2, 0}, 0, 0);  // nobody had a sample
  for (OpCase& c : adamw.cases) c.note = "second moments cannot be negative";
  rows.push_back(std::move(adamw));
}

}  // namespace netcl
