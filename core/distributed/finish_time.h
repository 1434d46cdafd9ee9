// How many rows each rank gets so that all finish a step at the same time.
//
// Threads: any.
#ifndef NETCL_CORE_DISTRIBUTED_FINISH_TIME_H_
#define NETCL_CORE_DISTRIBUTED_FINISH_TIME_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "core/distributed/cost_fit.h"

namespace netcl {

// What a rank's device allows and likes.
struct RankLimits {
  int64_t max_rows = std::numeric_limits<int64_t>::max();  // that fit into its memory
  int64_t multiple = 1;                                    // of rows, where it costs little
};

struct RankCost {
  CostLine line;
  RankLimits limits;
  bool takes_part = true;  // false: gets nothing
};

// The time of the slowest rank.
double finish_seconds(const std::vector<RankCost>& ranks, const std::vector<int64_t>& rows);

// Rows that sum to `batch`, for equal finish times, rounded by largest remainder (ties to the lower
// rank). A rank whose fixed cost alone is longer than the others need for everything gets nothing.
// The largest multiple that a rank likes, or half of it and so on, is taken if the step takes at
// most kMultipleCost longer with it. Empty if the batch does not fit into the ranks that take part.
std::vector<int64_t> equal_finish_rows(const std::vector<RankCost>& ranks, int64_t batch);

constexpr double kMultipleCost = 0.01;

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_FINISH_TIME_H_
