// Order statistics of measurements.
// Threads: any.
#ifndef NETCL_CORE_BASE_STATISTICS_H_
#define NETCL_CORE_BASE_STATISTICS_H_

#include <vector>

namespace netcl {

// The middle value, of an even number of values the upper of the two. There must be one.
double median(std::vector<double> values);

// The interquartile range as a part of the median. There must be a value.
double spread(std::vector<double> values);

}  // namespace netcl

#endif  // NETCL_CORE_BASE_STATISTICS_H_
