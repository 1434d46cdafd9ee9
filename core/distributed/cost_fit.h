// What a rank's part of a step costs: t(rows) = fixed + per_row * rows, from measured steps.
//
// The fixed part can only be told from the rest where the number of rows varies: by a change of the
// plan (the first trial makes one) or a ragged last batch. Until then it is taken as nothing, or,
// after a change of speed, as the same part of the whole as before.
// Threads: one.
#ifndef NETCL_CORE_DISTRIBUTED_COST_FIT_H_
#define NETCL_CORE_DISTRIBUTED_COST_FIT_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace netcl {

struct CostLine {
  double fixed = 0, per_row = 0;  // seconds

  double at(double rows) const { return rows > 0 ? fixed + per_row * rows : 0; }
};

// The middle one, of two the smaller: what disturbs a step makes it longer. 0 for none.
double lower_median(std::vector<double> values);

class CostFit {
 public:
  // A step of `rows` > 0 took `seconds` > 0.
  void add(int64_t rows, double seconds);
  // Makes the line pass through the median at the newest number of rows; its slope follows from the
  // medians at all numbers of rows, if they differ enough.
  void refit();
  bool measured() const { return line_.per_row > 0 || line_.fixed > 0; }
  const CostLine& line() const { return line_; }
  // Relative standard error of the median at the newest number of rows.
  double noise() const;
  // The rank's speed has changed: what was measured counts no more, the line is scaled.
  void rescale(double factor);

 private:
  struct Group {  // steps of the same number of rows
    int64_t rows;
    std::deque<double> seconds;
  };
  CostLine fitted(const Group& newest) const;

  static constexpr size_t kMostSteps = 64;        // kept for a number of rows
  static constexpr size_t kMostGroups = 4;        // the newest ones
  static constexpr size_t kLeastSteps = 2;        // for a group to count
  static constexpr double kLeastVariation = 1.2;  // of rows, most by least

  std::deque<Group> groups_;  // the newest last
  CostLine line_;
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_COST_FIT_H_
