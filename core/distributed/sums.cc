#include "core/distributed/sums.h"

#include <limits>

#include "core/nn/metric.h"
#include "core/nn/step_graphs.h"

namespace netcl {

double Sums::loss() const {
  const auto denominator = values.find(step_names::kDenominator);
  if (denominator == values.end() || denominator->second == 0)
    return std::numeric_limits<double>::quiet_NaN();
  return values.at(step_names::kLoss) / denominator->second;
}

bool Sums::has_accuracy() const { return values.count(metric_sums::kCorrect) > 0; }

double Sums::count() const {
  const auto counted = values.find(metric_sums::kCount);
  return counted != values.end() ? counted->second : values.at(step_names::kDenominator);
}

double Sums::accuracy() const {
  return has_accuracy() ? values.at(metric_sums::kCorrect) / count() : 0;
}

}  // namespace netcl
