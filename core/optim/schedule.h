// Learning-rate schedules: a factor on the base rate for every step. Threads: any (plain data).
//
// With W = warmup_steps, t = step - 1 - W (steps done since the warm-up), T = total_steps - W and
// m = min_factor, the factor of step s (from 1) is
//   s <= W    s / W, a straight line to 1; otherwise, with t / T at most 1:
//   constant  1
//   step      gamma ^ floor(t / step_size)
//   cosine    m + (1 - m) (1 + cos(pi t / T)) / 2
//   linear    1 + (m - 1) t / T
// Source: cosine: Loshchilov & Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR
// 2017, eq. 5, without restarts; warm-up: Goyal et al., "Accurate, large minibatch SGD", 2017.
#ifndef NETCL_CORE_OPTIM_SCHEDULE_H_
#define NETCL_CORE_OPTIM_SCHEDULE_H_

#include <cstdint>
#include <string>

namespace netcl {

struct Schedule {
  enum class Type { kConstant, kStep, kCosine, kLinear };

  Type type = Type::kConstant;
  int64_t warmup_steps = 0;
  double min_factor = 0;  // cosine and linear: least rate / base rate
  int64_t step_size = 0;  // step: steps between two drops; must be given
  double gamma = 0.1;     // step: factor of a drop

  // Errors: kUsage, naming the key, the value and the range.
  void check() const;

  // The factor for `step`, which counts from 1 to total_steps. A function of both alone, so that a
  // run that is stopped and resumed goes on with the same rates.
  // Errors: kUsage for step < 1.
  double lr_factor(int64_t step, int64_t total_steps) const;
};

// Errors: kUsage with the nearest name. Known: constant, step, cosine, linear.
Schedule::Type schedule_type(const std::string& name);
const char* schedule_name(Schedule::Type type);

}  // namespace netcl

#endif  // NETCL_CORE_OPTIM_SCHEDULE_H_
