#include "core/optim/optimizer.h"

#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"

namespace netcl {

namespace {

using Type = Optimizer::Type;

struct Named {
  Type type;
  const char* name;
};
constexpr Named kTypes[] = {{Type::kSgd, "sgd"},         {Type::kAdam, "adam"},
                            {Type::kAdamW, "adamw"},     {Type::kRmsprop, "rmsprop"},
                            {Type::kAdagrad, "adagrad"}, {Type::kLion, "lion"},
                            {Type::kLamb, "lamb"}};

void check_range(const char* key, double value, bool ok, const char* range) {
  NETCL_CHECK(std::isfinite(value) && ok, ErrorCode::kUsage, "optimizer: ", key, " must be ", range,
              ", is ", value);
}

void check_sgd(const Optimizer& o) {
  check_range("dampening", o.dampening, o.dampening >= 0 && o.dampening <= 1, "in [0, 1]");
  NETCL_CHECK(!o.nesterov || (o.momentum > 0 && o.dampening == 0), ErrorCode::kUsage,
              "optimizer: nesterov needs momentum above 0 and dampening 0; momentum is ",
              o.momentum, ", dampening ", o.dampening);
}

void check_any(const Optimizer& o) {
  check_range("clip_norm", o.clip_norm, o.clip_norm >= 0, "at least 0");
  check_range("clip_value", o.clip_value, o.clip_value >= 0, "at least 0");
  check_range("ema decay", o.ema_decay, o.ema_decay >= 0 && o.ema_decay < 1, "in [0, 1)");
  for (const ParameterGroup& group : o.groups) {
    check_range("lr_scale", group.lr_scale, group.lr_scale >= 0, "at least 0");
    const double decay = group.weight_decay.value_or(0);
    check_range("weight_decay", decay, decay >= 0, "at least 0");
  }
}

// 1 - beta^step.
double bias_correction(double beta, int64_t step) {
  return 1 - std::pow(beta, static_cast<double>(step));
}

}  // namespace

Optimizer Optimizer::of(Type type) {
  Optimizer out;
  out.type = type;
  out.lr = type == Type::kSgd || type == Type::kRmsprop || type == Type::kAdagrad ? 0.01 : 0.001;
  switch (type) {
    case Type::kAdamW:
      out.weight_decay = 0.01;
      break;
    case Type::kAdagrad:
      out.epsilon = 1e-10;
      break;
    case Type::kLion:
      out.lr = 1e-4;
      out.beta2 = 0.99;
      break;
    case Type::kLamb:
      out.epsilon = 1e-6;
      break;
    default:
      break;
  }
  return out;
}

Optimizer Optimizer::sgd(double lr) {
  Optimizer out = of(Type::kSgd);
  out.lr = lr;
  return out;
}

Optimizer Optimizer::adamw(double lr) {
  Optimizer out = of(Type::kAdamW);
  out.lr = lr;
  return out;
}

void Optimizer::check() const {
  check_range("lr", lr, lr >= 0, "at least 0");
  check_range("weight_decay", weight_decay, weight_decay >= 0, "at least 0");
  check_any(*this);
  check_range("momentum", momentum, momentum >= 0 && momentum < 1, "in [0, 1)");
  if (type == Type::kSgd) return check_sgd(*this);
  check_range("beta1", beta1, beta1 >= 0 && beta1 < 1, "in [0, 1)");
  check_range("beta2", beta2, beta2 >= 0 && beta2 < 1, "in [0, 1)");
  check_range("alpha", alpha, alpha >= 0 && alpha < 1, "in [0, 1)");
  check_range("lr_decay", lr_decay, lr_decay >= 0, "at least 0");
  check_range("initial_accumulator_value", initial_accumulator, initial_accumulator >= 0,
              "at least 0");
  check_range("eps", epsilon, epsilon >= 0, "at least 0");
  // The gaps of an arena hold zeros: their direction must stay 0, not 0 / 0.
  if (type == Type::kLamb) check_range("eps", epsilon, epsilon > 0, "above 0");
}

std::string Optimizer::op() const { return std::string(optimizer_name(type)) + "_step"; }

std::vector<std::pair<std::string, int64_t>> Optimizer::op_flags() const {
  switch (type) {
    case Type::kSgd:
      return {{"momentum", momentum > 0}};
    case Type::kAdam:
    case Type::kAdamW:
      return {{"amsgrad", amsgrad}};
    case Type::kRmsprop:
      return {{"momentum", momentum > 0}, {"centered", centered}};
    default:
      return {};
  }
}

std::vector<std::string> Optimizer::state_names() const {
  std::vector<std::string> out;
  switch (type) {
    case Type::kSgd:
      if (momentum > 0) out = {"momentum"};
      break;
    case Type::kAdam:
    case Type::kAdamW:
      out = {"m", "v"};
      if (amsgrad) out.emplace_back("v_max");
      break;
    case Type::kRmsprop:
      out = {"v"};
      if (momentum > 0) out.emplace_back("momentum");
      if (centered) out.emplace_back("mean_gradient");
      break;
    case Type::kAdagrad:
      out = {"sum"};
      break;
    case Type::kLion:
      out = {"m"};
      break;
    case Type::kLamb:
      out = {"m", "v"};
      break;
  }
  return out;
}

std::array<float, 16> Optimizer::hyper(int64_t step, double lr_now, double group_decay) const {
  NETCL_CHECK(step >= 1, ErrorCode::kUsage, "optimizer: steps count from 1, step is ", step);
  std::array<double, 16> h = {lr_now, group_decay, clip_value};
  switch (type) {
    case Type::kSgd:
      h[3] = momentum;
      h[4] = 1 - dampening;
      h[5] = nesterov ? 1 : 0;
      h[6] = step == 1 ? 1 : 0;
      break;
    case Type::kAdam:
    case Type::kAdamW:
    case Type::kLamb:
    case Type::kLion:
      h[3] = beta1;
      h[4] = 1 - beta1;
      h[5] = beta2;
      h[6] = 1 - beta2;
      h[7] = epsilon;
      h[8] = bias_correction(beta1, step);
      h[9] = std::sqrt(bias_correction(beta2, step));
      break;
    case Type::kRmsprop:
      h[3] = alpha;
      h[4] = 1 - alpha;
      h[5] = epsilon;
      h[6] = momentum;
      break;
    case Type::kAdagrad:
      h[0] = lr_now / (1 + static_cast<double>(step - 1) * lr_decay);
      h[3] = epsilon;
      break;
  }
  std::array<float, 16> out = {};
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(h[i]);
  return out;
}

Optimizer::Type optimizer_type(const std::string& name) {
  for (const Named& named : kTypes) {
    if (name == named.name) return named.type;
  }
  fail(ErrorCode::kUsage, "optimizer \"", name, "\" is unknown", suggest(name, optimizer_names()));
}

const char* optimizer_name(Optimizer::Type type) {
  for (const Named& named : kTypes) {
    if (type == named.type) return named.name;
  }
  return "?";
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> out;
  for (const Named& named : kTypes) out.emplace_back(named.name);
  return out;
}

}  // namespace netcl
