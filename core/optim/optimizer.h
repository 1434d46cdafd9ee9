// An optimiser is a description: hyper-parameters, the fused step op that carries them out, and the
// state it needs. It holds no tensors: parameters, gradients and state are flat arenas of the
// caller. Threads: any (plain data).
#ifndef NETCL_CORE_OPTIM_OPTIMIZER_H_
#define NETCL_CORE_OPTIM_OPTIMIZER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace netcl {

// What holds for the parameters whose slot name matches one of the patterns of `match`, which '|'
// separates ('*' and '?' as in file names). The first group that matches counts.
struct ParameterGroup {
  std::string match;
  std::optional<double> weight_decay = std::nullopt;  // nullopt: the optimiser's
  double lr_scale = 1;
  bool frozen = false;  // the parameters never change
};

struct Optimizer {
  enum class Type { kSgd, kAdam, kAdamW, kRmsprop, kAdagrad, kLion, kLamb };

  Type type = Type::kSgd;
  double lr = 0.01;  // the base rate; a Schedule scales it
  double weight_decay =
      0;                  // adamw and lion: decoupled; lamb: in its direction; else in the gradient
  double momentum = 0;    // sgd, rmsprop
  double dampening = 0;   // sgd
  bool nesterov = false;  // sgd
  double beta1 = 0.9;     // adam, adamw, lion, lamb, as is the next
  double beta2 = 0.999;
  double epsilon = 1e-8;  // all but sgd and lion
  bool amsgrad = false;   // adam, adamw
  double alpha = 0.99;    // rmsprop, as is the next
  bool centered = false;
  double lr_decay = 0;  // adagrad, as is the next
  double initial_accumulator = 0;

  // Of any type.
  std::vector<ParameterGroup> groups = {};
  bool no_decay_on_bias_and_norms = false;  // slots of rank below 2, unless a group matches them
  double clip_norm = 0;                     // of the whole gradient; 0: none
  double clip_value = 0;                    // of each element, after clip_norm; 0: none
  bool grad_norm = false;                   // measure the norm, also without clipping
  double ema_decay = 0;                     // moving average of the parameters; 0: none
  bool ema_evaluate = true;                 // evaluate with the average

  // PyTorch's defaults of a type; lion's and lamb's are their papers'.
  static Optimizer of(Type type);
  static Optimizer sgd(double lr = 0.01);
  static Optimizer adamw(double lr = 0.001);  // weight_decay 0.01

  // Errors: kUsage, naming the key, the value and the range, for a value that makes no sense.
  void check() const;

  // The op, such as "adamw_step" (core/ops/rows_optim.cc), and its attributes. Inputs: parameters,
  // gradients, hyper, blocks, divisor, for lamb slots, the states; outputs: parameters and states.
  std::string op() const;
  std::vector<std::pair<std::string, int64_t>> op_flags() const;
  // State arenas, each as long as the parameters: "momentum", or "m" and "v", and so on.
  std::vector<std::string> state_names() const;
  size_t num_states() const { return state_names().size(); }
  // What they hold before the first step.
  double initial_state() const { return type == Type::kAdagrad ? initial_accumulator : 0; }
  bool measures_norm() const { return grad_norm || clip_norm > 0; }

  // A group's row of the op's input `hyper` for step `step`, which counts from 1, at learning rate
  // `lr_now` and with the group's weight decay. What PyTorch computes in double is computed so.
  // Errors: kUsage for step < 1.
  std::array<float, 16> hyper(int64_t step, double lr_now, double group_decay) const;
};

// Errors: kUsage with the nearest name.
Optimizer::Type optimizer_type(const std::string& name);
const char* optimizer_name(Optimizer::Type type);
// sgd, adam, adamw, rmsprop, adagrad, lion, lamb.
std::vector<std::string> optimizer_names();

}  // namespace netcl

#endif  // NETCL_CORE_OPTIM_OPTIMIZER_H_
