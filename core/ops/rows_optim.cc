// Rows of the optimiser steps. They run on whole arenas (parameters and states are flat) and first
// divide the gradient by the denominator summed over all replicas.
// Source: torch.optim documents the order of operations followed here; Loshchilov & Hutter,
// "Decoupled weight decay regularization", ICLR 2019 (adamw); Chen et al., "Symbolic discovery of
// optimization algorithms", 2023 (lion); You et al., "Large batch optimization for deep learning",
// ICLR 2020 (lamb).
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/ops/checks.h"
#include "core/ops/optim_blocks.h"
#include "core/ops/rows.h"

namespace netcl {

namespace {

using optim_blocks::case_blocks;
using optim_blocks::divided;
using optim_blocks::group_of;
using optim_blocks::kBlock;
using optim_blocks::kFrozen;
using optim_blocks::kHyper;
using optim_blocks::num_blocks;

constexpr size_t kParam = 0, kGrad = 1, kHyperIn = 2, kBlocks = 3, kDivisor = 4;

// One element: parameter p and its states change; g is the divided and clipped gradient.
using Element = void (*)(const double* hyper, const Attrs& attrs, double g, double& p, double* s);

struct StepRule {
  std::string name;
  std::vector<const char*> flags;      // attributes, 0 or 1
  size_t (*num_states)(const Attrs&);  // by these flags
  Element element = nullptr;           // lamb has its own reference
  size_t first_state = 5;              // index of its input
  std::string formula = {}, source = {};
};

std::vector<TensorDesc> infer_step(const OpCall& call, const StepRule& rule) {
  const TensorDesc& param = call.in[kParam];
  NETCL_CHECK(param.shape.rank() == 1, ErrorCode::kUsage, "needs flat arenas [n], param is ",
              param.str());
  NETCL_CHECK(param.dtype == DType::kF32, ErrorCode::kUsage, "param must be f32, is ", param.str());
  for (const char* key : rule.flags) flag(call.attrs, key);
  const size_t states = rule.num_states(call.attrs);
  NETCL_CHECK(call.in.size() == rule.first_state + states, ErrorCode::kUsage, "needs ", states,
              " states with these attributes, that is ", rule.first_state + states, " inputs, has ",
              call.in.size());
  optim_blocks::require_gradients(call, kGrad, param.shape[0]);
  const TensorDesc& hyper = call.in[kHyperIn];
  NETCL_CHECK(hyper.dtype == DType::kF32 && hyper.shape.rank() == 2 && hyper.shape[1] == kHyper &&
                  hyper.shape[0] >= 1 && hyper.shape[0] < kFrozen,
              ErrorCode::kUsage, "hyper must be f32[groups,", kHyper, "] with 1 to ", kFrozen - 1,
              " groups, is ", hyper.str());
  require_desc(call, kBlocks, {DType::kI32, Shape{num_blocks(param.shape[0])}}, "table of blocks");
  require_desc(call, kDivisor, {DType::kF32, Shape{1}}, "divisor");
  for (size_t i = rule.first_state; i < call.in.size(); ++i) require_desc(call, i, param, "state");
  return std::vector<TensorDesc>(1 + states, param);
}

bool skipped(const std::vector<const HostTensor*>& in) {
  return !std::isfinite(in[kDivisor]->data[0]);
}

double gradient_of(const OpCall& call, const std::vector<const HostTensor*>& in, size_t i,
                   double clip) {
  const auto offset = static_cast<size_t>(call.attrs.integer("grad_offset"));
  const double g = divided(in[kGrad]->data[i + offset], in[kDivisor]->data[0]);
  return clip > 0 ? std::clamp(g, -clip, clip) : g;
}

const double* hyper_of(const std::vector<const HostTensor*>& in, size_t i) {
  return in[kHyperIn]->data.data() + group_of(*in[kBlocks], i) * kHyper;
}

void step_reference(const OpCall& call, const StepRule& rule,
                    const std::vector<const HostTensor*>& in, std::vector<HostTensor>& out) {
  std::vector<double> s(out.size());
  for (size_t i = 0; i < in[kParam]->data.size(); ++i) {
    double p = in[kParam]->data[i];
    for (size_t k = 1; k < out.size(); ++k) s[k - 1] = in[rule.first_state + k - 1]->data[i];
    if (group_of(*in[kBlocks], i) != kFrozen && !skipped(in)) {
      const double* hyper = hyper_of(in, i);
      rule.element(hyper, call.attrs, gradient_of(call, in, i, hyper[2]), p, s.data());
    }
    out[0].data[i] = p;
    for (size_t k = 1; k < out.size(); ++k) out[k].data[i] = s[k - 1];
  }
}

// hyper: [3] momentum, [4] 1 - dampening, [5] nesterov, [6] first step.
void sgd_element(const double* h, const Attrs& attrs, double g, double& p, double* s) {
  g += h[1] * p;
  if (attrs.integer("momentum") != 0) {
    s[0] = h[6] != 0 ? g : h[3] * s[0] + h[4] * g;
    g = h[5] != 0 ? g + h[3] * s[0] : s[0];
  }
  p -= h[0] * g;
}

// hyper: [3] beta1, [4] 1 - beta1, [5] beta2, [6] 1 - beta2, [7] epsilon, [8] 1 - beta1^t,
// [9] sqrt(1 - beta2^t).
void adam_direction(const double* h, const Attrs& attrs, double g, double& p, double* s) {
  s[0] += (g - s[0]) * h[4];
  s[1] = s[1] * h[5] + h[6] * g * g;
  double v = s[1];
  if (attrs.integer("amsgrad") != 0) v = s[2] = std::max(s[2], s[1]);
  p -= h[0] / h[8] * (s[0] / (std::sqrt(v) / h[9] + h[7]));
}
void adam_element(const double* h, const Attrs& attrs, double g, double& p, double* s) {
  adam_direction(h, attrs, g + h[1] * p, p, s);
}
void adamw_element(const double* h, const Attrs& attrs, double g, double& p, double* s) {
  p *= 1 - h[0] * h[1];
  adam_direction(h, attrs, g, p, s);
}

// hyper: [3] alpha, [4] 1 - alpha, [5] epsilon, [6] momentum.
void rmsprop_element(const double* h, const Attrs& attrs, double g, double& p, double* s) {
  const bool momentum = attrs.integer("momentum") != 0;
  g += h[1] * p;
  s[0] = s[0] * h[3] + h[4] * g * g;
  double v = s[0];
  if (attrs.integer("centered") != 0) {
    double& mean = s[momentum ? 2 : 1];
    mean += (g - mean) * h[4];
    v -= mean * mean;
  }
  double step = g / (std::sqrt(v) + h[5]);
  if (momentum) step = s[1] = s[1] * h[6] + step;
  p -= h[0] * step;
}

// hyper: [0] the rate after its decay, [3] epsilon.
void adagrad_element(const double* h, const Attrs&, double g, double& p, double* s) {
  g += h[1] * p;
  s[0] += g * g;
  p -= h[0] * (g / (std::sqrt(s[0]) + h[3]));
}

// hyper: [3] beta1, [4] 1 - beta1, [5] beta2, [6] 1 - beta2.
void lion_element(const double* h, const Attrs&, double g, double& p, double* s) {
  const double mixed = h[3] * s[0] + h[4] * g;
  s[0] = h[5] * s[0] + h[6] * g;
  p = p * (1 - h[0] * h[1]) - h[0] * (mixed > 0 ? 1 : mixed < 0 ? -1 : mixed);
}

// hyper as for adam. Input 5: slots i32[S,2], first block and number of blocks of every slot.
void lamb_reference(const OpCall& call, const std::vector<const HostTensor*>& in,
                    std::vector<HostTensor>& out) {
  const std::vector<double>& slots = in[5]->data;
  const size_t n = in[kParam]->data.size();
  std::vector<double> direction(n), params(slots.size() / 2), directions(slots.size() / 2);
  const auto slot_of = [&](size_t i) {
    return static_cast<size_t>(in[kBlocks]->data[i / kBlock]) >> 8;
  };
  for (size_t k = 0; k < out.size(); ++k) out[k].data = in[k == 0 ? kParam : 5 + k]->data;
  if (skipped(in)) return;
  for (size_t i = 0; i < n; ++i) {
    if (group_of(*in[kBlocks], i) == kFrozen) continue;
    const double* h = hyper_of(in, i);
    const double g = gradient_of(call, in, i, h[2]), p = in[kParam]->data[i];
    double &m = out[1].data[i], &v = out[2].data[i];
    m += (g - m) * h[4];
    v = v * h[5] + h[6] * g * g;
    direction[i] = m / h[8] / (std::sqrt(v) / h[9] + h[7]) + h[1] * p;
    params[slot_of(i)] += p * p;
    directions[slot_of(i)] += direction[i] * direction[i];
  }
  for (size_t i = 0; i < n; ++i) {
    if (group_of(*in[kBlocks], i) == kFrozen) continue;
    const double a = params[slot_of(i)], b = directions[slot_of(i)];
    const double ratio = a > 0 && b > 0 ? std::sqrt(a) / std::sqrt(b) : 1;
    out[0].data[i] -= hyper_of(in, i)[0] * ratio * direction[i];
  }
}

OpRow step_row(StepRule rule) {
  OpRow row;
  row.name = rule.name;
  row.doc = {rule.formula, "", rule.source};
  row.attrs = {{"grad_offset", int64_t{0}}};
  Attrs all;
  for (const char* key : rule.flags) {
    row.attrs.push_back({key, int64_t{0}});
    all.set(key, int64_t{1});
  }
  Attrs none;
  for (const char* key : rule.flags) none.set(key, int64_t{0});
  const size_t most = rule.num_states(all);
  row.min_in = rule.first_state + rule.num_states(none);
  row.max_in = rule.first_state + most;
  row.aliases = {static_cast<int>(kParam)};
  for (size_t s = 0; s < most; ++s) row.aliases.push_back(static_cast<int>(rule.first_state + s));
  row.infer = [rule](const OpCall& call) { return infer_step(call, rule); };
  row.facts = [](const OpCall& call, Attrs& facts) { facts.set("n", call.in[0].shape[0]); };
  row.reference = [rule](const OpCall& call, const std::vector<const HostTensor*>& in,
                         std::vector<HostTensor>& out) { step_reference(call, rule, in, out); };
  return row;
}

struct CaseSpec {
  std::vector<double> hyper;  // of group 0; group 1 has twice its rate and no decay
  double divisor = 3;
  Attrs attrs = {};
  size_t states = 1;
  double low = -1, high = 1;
  std::string note = {};
};

void add_cases(OpRow& row, const CaseSpec& spec, bool with_slots = false) {
  std::vector<double> hyper = spec.hyper;
  hyper.resize(kHyper);
  std::vector<double> second = hyper;
  second[0] *= 2;
  second[1] = 0;
  hyper.insert(hyper.end(), second.begin(), second.end());
  for (const int64_t n : {1, 7, 0, 1031, 4096}) {
    const TensorDesc arena{DType::kF32, {n}};
    OpCase c;
    c.in = {arena,
            arena,
            {DType::kF32, {2, kHyper}},
            {DType::kI32, {num_blocks(n)}},
            {DType::kF32, {1}}};
    c.fixed = {{kHyperIn, hyper}, {kBlocks, case_blocks(n)}, {kDivisor, {spec.divisor}}};
    if (with_slots) {
      std::vector<double> slots;
      for (int64_t b = 0; b < num_blocks(n); b += 2) {
        slots.push_back(static_cast<double>(b));
        slots.push_back(static_cast<double>(std::min<int64_t>(2, num_blocks(n) - b)));
      }
      c.in.push_back({DType::kI32, {static_cast<int64_t>(slots.size() / 2), 2}});
      c.fixed.push_back({5, slots});
    }
    for (size_t s = 0; s < spec.states; ++s) c.in.push_back(arena);
    c.attrs = spec.attrs;
    c.low = spec.low;
    c.high = spec.high;
    c.note = spec.note;
    row.cases.push_back(c);
  }
  OpCase sums = row.cases.back();  // gradients behind other numbers
  sums.in[kGrad].shape = Shape{sums.in[kParam].shape[0] + 133};
  sums.attrs.set("grad_offset", int64_t{128});
  row.cases.push_back(sums);
}

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr const char* kMoments = "second moments cannot be negative";

OpRow sgd_row() {
  OpRow row = step_row({"sgd_step",
                        {"momentum"},
                        [](const Attrs& a) { return static_cast<size_t>(a.integer("momentum")); },
                        sgd_element,
                        5,
                        "g += decay p; b = mu b + (1 - dampening) g; p -= lr (b, or g + mu b)",
                        "torch.optim.SGD"});
  const Attrs momentum = {{"momentum", int64_t{1}}};
  add_cases(row, {{0.1, 0.01, 0, 0.9, 0.75, 0, 1}, 3, momentum});  // first step: no dampening
  add_cases(row, {{0.1, 0, 0}, 1, {}, 0});                         // plain
  add_cases(row, {{0.1, 0.01, 0.1}, 3, {}, 0});                    // decay, clipped
  add_cases(row, {{0.1, 0.01, 0, 0.9, 0.75, 0, 0}, 3, momentum});
  add_cases(row, {{0.1, 0.01, 0, 0.9, 1, 1, 1}, 3, momentum});  // nesterov
  add_cases(row, {{0.1, 0.01, 0, 0.9, 1, 1, 0}, 3, momentum});
  add_cases(row, {{0.1, 0.01, 0, 0.9, 1, 1, 0}, 0, momentum});     // nobody had a sample
  add_cases(row, {{0.1, 0.01, 0, 0.9, 1, 1, 0}, kInf, momentum});  // skipped
  return row;
}

std::vector<double> adam_hyper(double decay, double epsilon, int step) {
  const double b1 = 0.9, b2 = 0.999;
  return {0.01,
          decay,
          0,
          b1,
          1 - b1,
          b2,
          1 - b2,
          epsilon,
          1 - std::pow(b1, step),
          std::sqrt(1 - std::pow(b2, step))};
}

OpRow adam_row(const std::string& name, bool decoupled) {
  OpRow row =
      step_row({name,
                {"amsgrad"},
                [](const Attrs& a) { return static_cast<size_t>(2 + a.integer("amsgrad")); },
                decoupled ? adamw_element : adam_element,
                5,
                std::string(decoupled ? "p *= 1 - lr decay; " : "g += decay p; ") +
                    "m += (1 - b1) (g - m); v = b2 v + (1 - b2) g^2; p -= lr m' / (sqrt(v') + eps)",
                decoupled ? "Loshchilov & Hutter, ICLR 2019" : "Kingma & Ba, ICLR 2015"});
  const Attrs amsgrad = {{"amsgrad", int64_t{1}}};
  std::vector<double> clipped = adam_hyper(0.1, 1e-8, 20);
  clipped[2] = 0.1;
  add_cases(row, {adam_hyper(0.1, 1e-8, 1), 3, {}, 2, 0, 1, kMoments});
  add_cases(row, {adam_hyper(0, 1e-8, 20), 1, {}, 2, 0, 1, kMoments});
  add_cases(row, {clipped, 3, amsgrad, 3, 0, 1, kMoments});
  add_cases(row, {adam_hyper(0.1, 1e-4, 1), 0, {}, 2, 0, 1, kMoments});  // nobody had a sample
  return row;
}

OpRow rmsprop_row() {
  OpRow row =
      step_row({"rmsprop_step",
                {"momentum", "centered"},
                [](const Attrs& a) {
                  return static_cast<size_t>(1 + a.integer("momentum") + a.integer("centered"));
                },
                rmsprop_element,
                5,
                "g += decay p; v = alpha v + (1 - alpha) g^2; p -= lr g / (sqrt(v) + eps)",
                "Tieleman & Hinton, 2012; Graves, 2013 (centered)"});
  const std::vector<double> hyper = {0.01, 0.1, 0, 0.9, 0.1, 1e-8, 0.8};
  for (const int64_t momentum : {0, 1}) {
    for (const int64_t centered : {0, 1}) {
      const Attrs attrs = {{"momentum", momentum}, {"centered", centered}};
      add_cases(row, {hyper, 1, attrs, static_cast<size_t>(1 + momentum + centered), 0.5, 0.7,
                      "the mean square stays above the squared mean"});
    }
  }
  return row;
}

OpRow one_state_row(const std::string& name, Element element, const std::string& formula,
                    const std::string& source) {
  return step_row({name, {}, [](const Attrs&) { return size_t{1}; }, element, 5, formula, source});
}

OpRow lamb_row() {
  OpRow row = step_row({"lamb_step",
                        {},
                        [](const Attrs&) { return size_t{2}; },
                        nullptr,
                        6,
                        "r = m' / (sqrt(v') + eps) + decay p; p -= lr |p| / |r| r, norms a slot",
                        "You et al., ICLR 2020"});
  const auto infer = row.infer;
  row.infer = [infer](const OpCall& call) {
    const TensorDesc& slots = call.in[5];
    NETCL_CHECK(slots.dtype == DType::kI32 && slots.shape.rank() == 2 && slots.shape[1] == 2,
                ErrorCode::kUsage, "slots must be i32[S,2], is ", slots.str());
    return infer(call);
  };
  row.facts = [](const OpCall& call, Attrs& facts) {
    facts.set("n", call.in[0].shape[0]);
    facts.set("n_slots", call.in[5].shape[0]);
  };
  row.reference = lamb_reference;
  add_cases(row, {adam_hyper(0.1, 1e-6, 1), 3, {}, 2, 0, 1, kMoments}, true);
  add_cases(row, {adam_hyper(0.01, 1e-6, 20), 1, {}, 2, 0, 1, kMoments}, true);
  add_cases(row, {adam_hyper(0.01, 1e-6, 20), kInf, {}, 2, 0, 1, kMoments}, true);
  return row;
}

}  // namespace

void add_optim_rows(std::vector<OpRow>& rows) {
  rows.push_back(sgd_row());
  rows.push_back(adam_row("adam_step", false));
  rows.push_back(adam_row("adamw_step", true));
  rows.push_back(rmsprop_row());

  OpRow adagrad = one_state_row("adagrad_step", adagrad_element,
                                "g += decay p; s += g^2; p -= lr g / (sqrt(s) + eps)",
                                "Duchi, Hazan & Singer, JMLR 2011");
  add_cases(adagrad, {{0.1, 0.1, 0, 1e-10}, 3, {}, 1, 0, 1, kMoments});
  rows.push_back(std::move(adagrad));

  OpRow lion =
      one_state_row("lion_step", lion_element,
                    "p = (1 - lr decay) p - lr sign(b1 m + (1 - b1) g); m = b2 m + (1 - b2) g",
                    "Chen et al., 2023");
  add_cases(lion, {{0.01, 0.1, 0, 0.9, 0.1, 0.99, 0.01}, 3});
  add_cases(lion, {{0.01, 0.1, 0, 0.9, 0.1, 0.99, 0.01}, 0});
  rows.push_back(std::move(lion));
  rows.push_back(lamb_row());
}

}  // namespace netcl
