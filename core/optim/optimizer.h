// An optimiser is a description: hyper-parameters, the fused step op that carries them out, and the
// state it needs. It holds no tensors: parameters, gradients and state are flat arenas of the
// caller. Threads: any (plain data).
#ifndef NETCL_CORE_OPTIM_OPTIMIZER_H_
#define NETCL_CORE_OPTIM_OPTIMIZER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace netcl {

struct Optimizer {
  enum class Type { kSgd, kAdamW };

  Type type = Type::kSgd;
  double lr = 0.01;         // the base rate; a Schedule scales it
  double weight_decay = 0;  // sgd: added to the gradient; adamw: decoupled
  double momentum = 0;      // sgd, as are the next two
  double dampening = 0;
  bool nesterov = false;
  double beta1 = 0.9;  // adamw, as are the next two
  double beta2 = 0.999;
  double epsilon = 1e-8;

  // PyTorch's defaults of either type.
  static Optimizer sgd(double lr = 0.01);
  static Optimizer adamw(double lr = 0.001);  // weight_decay 0.01

  // Errors: kUsage, naming the key, the value and the range, for a value that makes no sense.
  void check() const;

  // "sgd_step" or "adamw_step" (core/ops/rows_optim.cc). Inputs: parameters, gradients, the states,
  // hyper, divisor; outputs: parameters and states.
  std::string op() const;
  // State arenas, each as long as the parameters and zero at the start: "momentum", or "m" and "v".
  std::vector<std::string> state_names() const;
  size_t num_states() const { return state_names().size(); }

  // The op's input `hyper` for step `step`, which counts from 1, at learning rate `lr_now`. Bias
  // corrections are computed in double, from the betas as the device holds them (f32), so that the
  // first step's average is exactly the gradient.
  // Errors: kUsage for step < 1.
  std::array<float, 8> hyper(int64_t step, double lr_now) const;
};

// Errors: kUsage with the nearest name. Known: sgd, adamw.
Optimizer::Type optimizer_type(const std::string& name);
const char* optimizer_name(Optimizer::Type type);

}  // namespace netcl

#endif  // NETCL_CORE_OPTIM_OPTIMIZER_H_
