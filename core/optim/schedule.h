// Learning-rate schedules: a factor on the base rate for every step. Threads: any (plain data).
//
// Time t counts, from 0, the steps done since the warm-up, or with unit epoch the epochs; T is the
// whole time in the same unit (`total`, or what the run has after the warm-up). With W the steps of
// the warm-up, m = min_factor and p = min(t / T, 1) the factor of step s (from 1) is
//   s <= W       s / W, a straight line to 1; otherwise
//   constant     1
//   step         gamma ^ floor(t / step_size)
//   multistep    gamma ^ (number of milestones that are at most t)
//   exponential  gamma ^ t
//   polynomial   m + (1 - m) (1 - p) ^ power
//   cosine       m + (1 - m) (1 + cos(pi p)) / 2
//   linear       1 + (m - 1) p
//   one_cycle    from 1 / div up to 1 in pct_start T, then down to 1 / (div final_div) at T - 1,
//                each by half a cosine or a line; momentum is not cycled
//   plateau      1, times what a Plateau says
// These are PyTorch's StepLR, MultiStepLR, ExponentialLR, PolynomialLR, CosineAnnealingLR, LinearLR
// (from 1), OneCycleLR and ReduceLROnPlateau, where its scheduler takes a step a unit.
// Source: cosine: Loshchilov & Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR
// 2017, eq. 5, without restarts; one_cycle: Smith & Topin, "Super-convergence", 2018; warm-up:
// Goyal et al., "Accurate, large minibatch SGD", 2017.
#ifndef NETCL_CORE_OPTIM_SCHEDULE_H_
#define NETCL_CORE_OPTIM_SCHEDULE_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace netcl {

struct Schedule {
  enum class Type {
    kConstant,
    kStep,
    kMultistep,
    kExponential,
    kPolynomial,
    kCosine,
    kLinear,
    kOneCycle,
    kPlateau
  };

  Type type = Type::kConstant;
  bool by_epoch = false;  // the unit of time
  int64_t warmup_steps = 0;
  int64_t warmup_epochs = 0;  // instead of warmup_steps
  int64_t total = 0;          // polynomial, cosine, linear, one_cycle: T in units; 0: the run's
  double min_factor = 0;      // polynomial, cosine, linear, plateau: least rate / base rate
  int64_t step_size = 0;      // step: units between two drops; must be given
  std::vector<int64_t> milestones = {};  // multistep: ascending units
  double gamma = 0.1;                    // step, multistep, exponential: factor of a drop
  double power = 1;                      // polynomial
  double pct_start = 0.3;                // one_cycle, as are the next three
  double div_factor = 25;
  double final_div_factor = 1e4;
  bool linear_anneal = false;
  // plateau
  bool watch_train = false;  // the training loss instead of the test loss
  double factor = 0.1;
  int64_t patience = 10, cooldown = 0;
  double threshold = 1e-4;
  bool absolute_threshold = false;

  // Errors: kUsage, naming the key, the value and the range.
  void check() const;

  // Steps of the warm-up in a run whose epochs have so many steps.
  int64_t warmup(int64_t steps_per_epoch) const;
  // The factor for `step`, which counts from 1 to total_steps. A function of these alone, so that a
  // run that is stopped and resumed goes on with the same rates. A plateau's own factor comes on
  // top. Errors: kUsage for step < 1.
  double lr_factor(int64_t step, int64_t total_steps, int64_t steps_per_epoch = 1) const;
};

// The memory of a plateau schedule: lowers its factor when a loss has not fallen for more than
// `patience` epochs, as ReduceLROnPlateau does. Every rank feeds it the same numbers.
struct Plateau {
  double factor = 1;
  double best = std::numeric_limits<double>::infinity();
  int64_t bad_epochs = 0, cooldown_left = 0;

  // The end of an epoch; true if the factor fell.
  bool end_of_epoch(const Schedule& schedule, double loss);
};

// Errors: kUsage with the nearest name.
Schedule::Type schedule_type(const std::string& name);
const char* schedule_name(Schedule::Type type);
// constant, step, multistep, exponential, polynomial, cosine, linear, one_cycle, plateau.
std::vector<std::string> schedule_names();

}  // namespace netcl

#endif  // NETCL_CORE_OPTIM_SCHEDULE_H_
