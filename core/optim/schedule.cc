#include "core/optim/schedule.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"

namespace netcl {

namespace {

using Type = Schedule::Type;

constexpr double kPi = 3.14159265358979323846;
constexpr double kLeastChange = 1e-8;  // of a rate: a plateau's smaller drops are left out

struct Named {
  Type type;
  const char* name;
};
constexpr Named kTypes[] = {{Type::kConstant, "constant"},     {Type::kStep, "step"},
                            {Type::kMultistep, "multistep"},   {Type::kExponential, "exponential"},
                            {Type::kPolynomial, "polynomial"}, {Type::kCosine, "cosine"},
                            {Type::kLinear, "linear"},         {Type::kOneCycle, "one_cycle"},
                            {Type::kPlateau, "plateau"}};

// From `from` to `to` by half a cosine or a line; p in [0, 1].
double anneal(bool linear, double from, double to, double p) {
  return linear ? from + (to - from) * p : to + (from - to) / 2 * (1 + std::cos(kPi * p));
}

double one_cycle(const Schedule& s, double t, double total) {
  const double start = 1 / s.div_factor, end = start / s.final_div_factor;
  const double top = s.pct_start * total - 1, last = total - 1;
  if (t <= top && top > 0) return anneal(s.linear_anneal, start, 1, t / top);
  const double width = last - std::max(top, 0.0);
  const double p = width > 0 ? (t - std::max(top, 0.0)) / width : 1;
  return anneal(s.linear_anneal, 1, end, std::clamp(p, 0.0, 1.0));
}

void check_factor(const char* key, double value, bool ok, const char* range) {
  NETCL_CHECK(std::isfinite(value) && ok, ErrorCode::kUsage, "schedule: ", key, " must be ", range,
              ", is ", value);
}

}  // namespace

void Schedule::check() const {
  NETCL_CHECK(warmup_steps >= 0 && warmup_epochs >= 0, ErrorCode::kUsage,
              "schedule: warmup_steps must be at least 0, is ",
              std::min(warmup_steps, warmup_epochs));
  NETCL_CHECK(warmup_steps == 0 || warmup_epochs == 0, ErrorCode::kUsage,
              "schedule: give either warmup_steps or warmup_epochs, not both");
  NETCL_CHECK(min_factor >= 0 && min_factor <= 1, ErrorCode::kUsage,
              "schedule: the least rate must be between 0 and the base rate; their quotient is ",
              min_factor);
  NETCL_CHECK(type != Type::kStep || step_size >= 1, ErrorCode::kUsage,
              "schedule: step_size must be at least 1, is ", step_size);
  NETCL_CHECK(type != Type::kMultistep || !milestones.empty(), ErrorCode::kUsage,
              "schedule: milestones must name at least one step or epoch");
  for (size_t i = 0; i < milestones.size(); ++i) {
    NETCL_CHECK(milestones[i] >= 1 && (i == 0 || milestones[i] > milestones[i - 1]),
                ErrorCode::kUsage, "schedule: milestones must ascend from 1 on; number ", i + 1,
                " is ", milestones[i]);
  }
  NETCL_CHECK(total >= 0, ErrorCode::kUsage, "schedule: total must be at least 0, is ", total);
  check_factor("gamma", gamma, gamma > 0, "above 0");
  check_factor("power", power, power > 0, "above 0");
  check_factor("pct_start", pct_start, pct_start >= 0 && pct_start <= 1, "in [0, 1]");
  check_factor("div_factor", div_factor, div_factor >= 1, "at least 1");
  check_factor("final_div_factor", final_div_factor, final_div_factor >= 1, "at least 1");
  check_factor("factor", factor, factor > 0 && factor < 1, "above 0 and below 1");
  check_factor("threshold", threshold, threshold >= 0, "at least 0");
  NETCL_CHECK(patience >= 0 && cooldown >= 0, ErrorCode::kUsage,
              "schedule: patience and cooldown must be at least 0");
}

int64_t Schedule::warmup(int64_t steps_per_epoch) const {
  return warmup_epochs > 0 ? warmup_epochs * steps_per_epoch : warmup_steps;
}

double Schedule::lr_factor(int64_t step, int64_t total_steps, int64_t steps_per_epoch) const {
  NETCL_CHECK(step >= 1, ErrorCode::kUsage, "schedule: steps count from 1, step is ", step);
  const int64_t warm = warmup(steps_per_epoch);
  if (step <= warm) return static_cast<double>(step) / static_cast<double>(warm);
  const int64_t unit = by_epoch ? std::max<int64_t>(1, steps_per_epoch) : 1;
  const int64_t done = (step - 1) / unit - warm / unit;
  const int64_t rest = (total_steps + unit - 1) / unit - warm / unit;
  const auto t = static_cast<double>(done);
  const auto whole = static_cast<double>(std::max<int64_t>(1, total > 0 ? total : rest));
  const double progress = std::min(1.0, t / whole);
  switch (type) {
    case Type::kConstant:
    case Type::kPlateau:
      return 1;
    case Type::kStep:
      return std::pow(gamma, static_cast<double>(done / step_size));
    case Type::kMultistep:
      return std::pow(gamma, static_cast<double>(std::count_if(
                                 milestones.begin(), milestones.end(),
                                 [done](int64_t milestone) { return milestone <= done; })));
    case Type::kExponential:
      return std::pow(gamma, t);
    case Type::kPolynomial:
      return min_factor + (1 - min_factor) * std::pow(1 - progress, power);
    case Type::kCosine:
      return min_factor + (1 - min_factor) * (1 + std::cos(kPi * progress)) / 2;
    case Type::kLinear:
      return 1 + (min_factor - 1) * progress;
    case Type::kOneCycle:
      return one_cycle(*this, t, whole);
  }
  return 1;
}

bool Plateau::end_of_epoch(const Schedule& schedule, double loss) {
  const double wanted =
      schedule.absolute_threshold ? best - schedule.threshold : best * (1 - schedule.threshold);
  if (loss < wanted) {
    best = loss;
    bad_epochs = 0;
  } else {
    ++bad_epochs;
  }
  if (cooldown_left > 0) {
    --cooldown_left;
    bad_epochs = 0;
  }
  if (bad_epochs <= schedule.patience) return false;
  cooldown_left = schedule.cooldown;
  bad_epochs = 0;
  const double next = std::max(factor * schedule.factor, schedule.min_factor);
  if (factor - next <= kLeastChange) return false;
  factor = next;
  return true;
}

Schedule::Type schedule_type(const std::string& name) {
  for (const Named& named : kTypes) {
    if (name == named.name) return named.type;
  }
  fail(ErrorCode::kUsage, "schedule \"", name, "\" is unknown", suggest(name, schedule_names()));
}

const char* schedule_name(Schedule::Type type) {
  for (const Named& named : kTypes) {
    if (type == named.type) return named.name;
  }
  return "?";
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> out;
  for (const Named& named : kTypes) out.emplace_back(named.name);
  return out;
}

}  // namespace netcl
