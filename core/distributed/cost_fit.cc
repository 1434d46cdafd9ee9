#include "core/distributed/cost_fit.h"

#include <algorithm>
#include <cmath>

namespace netcl {

namespace {

std::vector<double> copy_of(const std::deque<double>& values) {
  return {values.begin(), values.end()};
}

}  // namespace

double lower_median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void CostFit::add(int64_t rows, double seconds) {
  const auto found = std::find_if(groups_.begin(), groups_.end(),
                                  [&](const Group& group) { return group.rows == rows; });
  Group group = found == groups_.end() ? Group{rows, {}} : std::move(*found);
  if (found != groups_.end()) groups_.erase(found);
  group.seconds.push_back(seconds);
  if (group.seconds.size() > kMostSteps) group.seconds.pop_front();
  groups_.push_back(std::move(group));
  if (groups_.size() > kMostGroups) groups_.pop_front();
}

// Least squares over the groups' medians, each weighted by its steps.
CostLine CostFit::fitted(const Group& newest) const {
  const double x0 = static_cast<double>(newest.rows), t0 = lower_median(copy_of(newest.seconds));
  double weight = 0, sx = 0, st = 0, sxx = 0, sxt = 0, least = x0, most = x0;
  for (const Group& group : groups_) {
    if (group.seconds.size() < kLeastSteps) continue;
    const double x = static_cast<double>(group.rows), t = lower_median(copy_of(group.seconds));
    const double w = static_cast<double>(group.seconds.size());
    weight += w;
    sx += w * x;
    st += w * t;
    sxx += w * x * x;
    sxt += w * x * t;
    least = std::min(least, x);
    most = std::max(most, x);
  }
  if (most >= kLeastVariation * least) {
    const double slope = (weight * sxt - sx * st) / (weight * sxx - sx * sx);
    const double fixed = std::max(0.0, t0 - slope * x0);
    if (slope > 0) return {fixed, (t0 - fixed) / x0};
  }
  const double known = line_.at(x0);
  if (known > 0) return {line_.fixed * t0 / known, line_.per_row * t0 / known};
  return {0, t0 / x0};
}

void CostFit::refit() {
  for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) {
    if (group->seconds.size() < kLeastSteps) continue;
    line_ = fitted(*group);
    return;
  }
  if (!groups_.empty()) line_ = fitted(groups_.back());
}

double CostFit::noise() const {
  if (groups_.empty()) return 0;
  std::vector<double> values = copy_of(groups_.back().seconds);
  const double middle = lower_median(values);
  for (double& value : values) value = std::abs(value - middle);
  // 1.4826: from the median deviation to the standard one; 1.2533: from a mean to a median.
  const double deviation = 1.4826 * 1.2533 * lower_median(values);
  return deviation / std::sqrt(static_cast<double>(values.size())) / middle;
}

void CostFit::rescale(double factor) {
  groups_.clear();
  line_.fixed *= factor;
  line_.per_row *= factor;
}

}  // namespace netcl
