#include "core/base/statistics.h"

#include <algorithm>
#include <cstddef>

namespace netcl {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return (values[3 * n / 4] - values[n / 4]) / values[n / 2];
}

}  // namespace netcl
