#include "apps/netcl_app/own_cores.h"

#include <sched.h>

#include <vector>

#include "core/base/error.h"

namespace netcl::app {

void keep_to_own_cores(const Job& job) {
  if (job.shares.count < 2 || job.device.type != "cpu") return;
  cpu_set_t all, mine;
  CPU_ZERO(&mine);
  if (::sched_getaffinity(0, sizeof(all), &all) != 0) return;
  std::vector<int> cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &all)) cores.push_back(i);
  }
  const auto available = static_cast<int64_t>(cores.size());
  const DeviceShares::Range range = job.shares.range(job.share_index, available);
  NETCL_CHECK(job.shares.units.empty() || range.first + range.count <= available, ErrorCode::kUsage,
              "--devices ", job.device.selector, "/", job.shares.text(), ": this process may use ",
              available, available == 1 ? " core" : " cores", " (see `taskset -p`), too few for ",
              job.label);
  for (int64_t i = range.first; i < range.first + range.count; ++i) {
    CPU_SET(cores[static_cast<size_t>(i % available)], &mine);
  }
  ::sched_setaffinity(0, sizeof(mine), &mine);
}

}  // namespace netcl::app
