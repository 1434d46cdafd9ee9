#include "core/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"

namespace netcl {

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr Schedule::Type kTypes[] = {Schedule::Type::kConstant, Schedule::Type::kStep,
                                     Schedule::Type::kCosine, Schedule::Type::kLinear};

}  // namespace

void Schedule::check() const {
  NETCL_CHECK(warmup_steps >= 0, ErrorCode::kUsage,
              "schedule: warmup_steps must be at least 0, is ", warmup_steps);
  NETCL_CHECK(min_factor >= 0 && min_factor <= 1, ErrorCode::kUsage,
              "schedule: the least rate must be between 0 and the base rate; their quotient is ",
              min_factor);
  NETCL_CHECK(type != Type::kStep || step_size >= 1, ErrorCode::kUsage,
              "schedule: step_size must be at least 1, is ", step_size);
  NETCL_CHECK(gamma > 0 && std::isfinite(gamma), ErrorCode::kUsage,
              "schedule: gamma must be above 0, is ", gamma);
}

double Schedule::lr_factor(int64_t step, int64_t total_steps) const {
  NETCL_CHECK(step >= 1, ErrorCode::kUsage, "schedule: steps count from 1, step is ", step);
  if (step <= warmup_steps) return static_cast<double>(step) / static_cast<double>(warmup_steps);
  const int64_t done = step - 1 - warmup_steps;
  const int64_t total = std::max<int64_t>(1, total_steps - warmup_steps);
  const double progress = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  switch (type) {
    case Type::kConstant:
      return 1;
    case Type::kStep:
      return std::pow(gamma, static_cast<double>(done / step_size));
    case Type::kCosine:
      return min_factor + (1 - min_factor) * (1 + std::cos(kPi * progress)) / 2;
    case Type::kLinear:
      return 1 + (min_factor - 1) * progress;
  }
  return 1;
}

Schedule::Type schedule_type(const std::string& name) {
  std::vector<std::string> names;
  for (const Schedule::Type type : kTypes) {
    if (name == schedule_name(type)) return type;
    names.emplace_back(schedule_name(type));
  }
  fail(ErrorCode::kUsage, "schedule \"", name, "\" is unknown", suggest(name, names));
}

const char* schedule_name(Schedule::Type type) {
  switch (type) {
    case Schedule::Type::kConstant:
      return "constant";
    case Schedule::Type::kStep:
      return "step";
    case Schedule::Type::kCosine:
      return "cosine";
    case Schedule::Type::kLinear:
      return "linear";
  }
  return "?";
}

}  // namespace netcl
