// The clock of durations and deadlines. It never goes back, and all processes of a host share it.
#ifndef NETCL_CORE_BASE_CLOCK_H_
#define NETCL_CORE_BASE_CLOCK_H_

#include <chrono>

namespace netcl {

// Units: seconds, since some moment.
inline double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace netcl

#endif  // NETCL_CORE_BASE_CLOCK_H_
