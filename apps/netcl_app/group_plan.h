// Which transport a run's workers use, and in how many processes they live. The one place where
// commands choose.
#ifndef NETCL_APPS_NETCL_APP_GROUP_PLAN_H_
#define NETCL_APPS_NETCL_APP_GROUP_PLAN_H_

#include <functional>
#include <string>
#include <vector>

#include "apps/netcl_app/job.h"
#include "apps/netcl_app/supervisor.h"
#include "apps/netcl_app/transport_times.h"
#include "core/distributed/selectors.h"
#include "core/runtime/plugin_host.h"

namespace netcl::app {

struct GroupPlan {
  std::string transport = "none";  // the plugin; none: there is one worker
  bool one_process = false;        // all ranks in one worker process, in one OpenCL context
  std::string why;                 // where there was a choice: one line for people
  Json probe;                      // the numbers behind it; null: nothing was timed
};

struct GroupWishes {
  std::string transport = "auto";
  FailurePolicy on_failure =
      FailurePolicy::kStop;  // Times, for `auto`, the best transport for a process a device beside
                             // the best one for devices in
  // one context; null: it takes the former.
  std::function<TransportTimes(const std::string& staged, const std::string& shared)> time =
      nullptr;
};

// Errors: kPlugin if there is no such transport, or it cannot serve these places, naming the first
// pair; kUsage for what contradicts it.
GroupPlan plan_group(const GroupWishes& wishes, const std::vector<WorkerPlace>& places,
                     const PluginHost& plugins);

// The places of the worker processes: those of the ranks, or one for all of them. `job.members` is
// set accordingly.
std::vector<WorkerPlace> worker_places(const GroupPlan& plan,
                                       const std::vector<WorkerPlace>& places, Job& job);
// What became of each rank, from what became of the worker processes.
RunOutcome by_rank(RunOutcome outcome, const GroupPlan& plan, size_t n_ranks);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_GROUP_PLAN_H_
