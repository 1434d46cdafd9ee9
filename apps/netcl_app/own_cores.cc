#include "apps/netcl_app/own_cores.h"

#include <sched.h>

#include <algorithm>
#include <vector>

namespace netcl::app {

void keep_to_own_cores(const Job& job) {
  if (job.share_count < 2 || job.device.type != "cpu") return;
  cpu_set_t all, mine;
  CPU_ZERO(&mine);
  if (::sched_getaffinity(0, sizeof(all), &all) != 0) return;
  std::vector<int> cores;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &all)) cores.push_back(i);
  }
  const int count = static_cast<int>(cores.size());
  const int first = job.share_index * count / job.share_count;
  const int last = std::max(first + 1, (job.share_index + 1) * count / job.share_count);
  for (int i = first; i < last; ++i) CPU_SET(cores[static_cast<size_t>(i % count)], &mine);
  ::sched_setaffinity(0, sizeof(mine), &mine);
}

}  // namespace netcl::app
