// Sums over samples and the means that they give: what training and evaluation report.
#ifndef NETCL_CORE_DISTRIBUTED_SUMS_H_
#define NETCL_CORE_DISTRIBUTED_SUMS_H_

#include <map>
#include <string>
#include <vector>

#include "core/nn/arena.h"

namespace netcl {

// Sums over samples, and the means that they give.
struct Sums {
  std::map<std::string, double> values;                 // by StepGraphs::sums name
  std::map<std::string, std::vector<double>> matrices;  // of evaluation: sums of more than one

  void add(const Sums& other);  // of the same names and sizes
  // Values that lie side by side as `layout` says, such as StepGraphs::eval_sums.
  void add(const ArenaLayout& layout, const float* arena);
  double loss() const;      // mean over the denominator; NaN without samples
  double accuracy() const;  // 0 where it was not asked for
  bool has_accuracy() const;
  double count() const;  // rows (or elements) that count, whatever their weights
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_SUMS_H_
