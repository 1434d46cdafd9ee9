#include "core/optim/optimizer.h"

#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"

namespace netcl {

namespace {

void check_range(const char* key, double value, bool ok, const char* range) {
  NETCL_CHECK(std::isfinite(value) && ok, ErrorCode::kUsage, "optimizer: ", key, " must be ", range,
              ", is ", value);
}

// 1 - beta^step for beta as f32 holds it.
float bias_correction(double beta, int64_t step) {
  const double held = static_cast<double>(static_cast<float>(beta));
  return static_cast<float>(1 - std::pow(held, static_cast<double>(step)));
}

}  // namespace

Optimizer Optimizer::sgd(double lr) {
  Optimizer out;
  out.lr = lr;
  return out;
}

Optimizer Optimizer::adamw(double lr) {
  Optimizer out;
  out.type = Type::kAdamW;
  out.lr = lr;
  out.weight_decay = 0.01;
  return out;
}

void Optimizer::check() const {
  check_range("lr", lr, lr >= 0, "at least 0");
  check_range("weight_decay", weight_decay, weight_decay >= 0, "at least 0");
  if (type == Type::kSgd) {
    check_range("momentum", momentum, momentum >= 0 && momentum < 1, "in [0, 1)");
    check_range("dampening", dampening, dampening >= 0 && dampening <= 1, "in [0, 1]");
    NETCL_CHECK(!nesterov || (momentum > 0 && dampening == 0), ErrorCode::kUsage,
                "optimizer: nesterov needs momentum above 0 and dampening 0; momentum is ",
                momentum, ", dampening ", dampening);
    return;
  }
  check_range("beta1", beta1, beta1 >= 0 && beta1 < 1, "in [0, 1)");
  check_range("beta2", beta2, beta2 >= 0 && beta2 < 1, "in [0, 1)");
  check_range("eps", epsilon, epsilon >= 0, "at least 0");
}

std::string Optimizer::op() const { return type == Type::kSgd ? "sgd_step" : "adamw_step"; }

std::vector<std::string> Optimizer::state_names() const {
  if (type == Type::kSgd) return {"momentum"};
  return {"m", "v"};
}

std::array<float, 8> Optimizer::hyper(int64_t step, double lr_now) const {
  NETCL_CHECK(step >= 1, ErrorCode::kUsage, "optimizer: steps count from 1, step is ", step);
  const auto f = [](double x) { return static_cast<float>(x); };
  if (type == Type::kSgd) {
    return {f(lr_now),
            f(momentum),
            f(dampening),
            f(weight_decay),
            nesterov ? 1.0f : 0.0f,
            step == 1 ? 1.0f : 0.0f,
            0.0f,
            0.0f};
  }
  return {f(lr_now),
          f(beta1),
          f(beta2),
          f(epsilon),
          f(weight_decay),
          bias_correction(beta1, step),
          bias_correction(beta2, step),
          0.0f};
}

Optimizer::Type optimizer_type(const std::string& name) {
  if (name == "sgd") return Optimizer::Type::kSgd;
  if (name == "adamw") return Optimizer::Type::kAdamW;
  fail(ErrorCode::kUsage, "optimizer \"", name, "\" is unknown", suggest(name, {"sgd", "adamw"}));
}

const char* optimizer_name(Optimizer::Type type) {
  return type == Optimizer::Type::kSgd ? "sgd" : "adamw";
}

}  // namespace netcl
