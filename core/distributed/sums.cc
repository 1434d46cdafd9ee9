#include "core/distributed/sums.h"

#include <limits>

#include "core/nn/metric.h"
#include "core/nn/step_graphs.h"

namespace netcl {

void Sums::add(const Sums& other) {
  for (const auto& [name, value] : other.values) values[name] += value;
  for (const auto& [name, matrix] : other.matrices) {
    std::vector<double>& mine = matrices[name];
    mine.resize(matrix.size());
    for (size_t i = 0; i < matrix.size(); ++i) mine[i] += matrix[i];
  }
}

void Sums::add(const ArenaLayout& layout, const float* arena) {
  for (const ArenaLayout::Entry& entry : layout.entries()) {
    const float* sums = arena + entry.offset;
    if (entry.desc.shape.rank() == 0) {
      values[entry.name] += static_cast<double>(*sums);
      continue;
    }
    std::vector<double>& matrix = matrices[entry.name];
    matrix.resize(static_cast<size_t>(entry.desc.shape.num_elements()), 0.0);
    for (size_t i = 0; i < matrix.size(); ++i) matrix[i] += static_cast<double>(sums[i]);
  }
}

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
