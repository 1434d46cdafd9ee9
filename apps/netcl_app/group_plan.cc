#include "apps/netcl_app/group_plan.h"

#include <set>
#include <utility>

#include "apps/netcl_app/joined_messages.h"
#include "apps/netcl_app/one_context.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/runtime/transport.h"

namespace netcl::app {

namespace {

// Why `auto` does not even time the shared transport; "": it does.
std::string no_candidate(const GroupWishes& wishes, const std::vector<WorkerPlace>& places,
                         const std::string& shared) {
  if (shared.empty()) return "no transport for devices in one context serves";
  std::set<std::string> devices, platforms;
  for (const WorkerPlace& place : places) {
    devices.insert(place.device.platform_selector());
    platforms.insert(place.device.platform + "|" + place.device.icd);
  }
  if (devices.size() < places.size()) return "workers that share a device keep a process each";
  if (platforms.size() > 1)
    return str_cat("the devices belong to ", platforms.size(),
                   " OpenCL platforms, which share no context");
  if (wishes.on_failure == FailurePolicy::kContinue)
    return "--on-failure continue needs a process a device";
  return "";
}

GroupPlan automatic(const GroupWishes& wishes, const std::vector<WorkerPlace>& places,
                    const PluginHost& plugins) {
  GroupPlan out;
  const std::string staged = best_transport(/*one_context=*/false, plugins);
  const std::string shared = best_transport(/*one_context=*/true, plugins);
  out.transport = staged.empty() ? choose_transport("auto", plugins) : staged;
  if (wishes.time == nullptr || staged.empty()) return out;
  if (const std::string reason = no_candidate(wishes, places, shared); !reason.empty()) {
    out.why = str_cat(out.transport, ": ", reason);
    return out;
  }
  const TransportTimes times = wishes.time(staged, shared);
  const TransportDecision decision = decide(times);
  out.probe = to_json(times);
  out.why = decision.why;
  if (decision.shared) out.transport = shared;
  return out;
}

}  // namespace

GroupPlan plan_group(const GroupWishes& wishes, const std::vector<WorkerPlace>& places,
                     const PluginHost& plugins) {
  GroupPlan out;
  if (wishes.transport != "auto") out.transport = choose_transport(wishes.transport, plugins);
  if (places.size() == 1) return {};
  if (wishes.transport == "auto") out = automatic(wishes, places, plugins);
  out.one_process = needs_one_context(out.transport, plugins);
  if (!out.one_process) return out;
  require_one_platform(places, out.transport);
  NETCL_CHECK(wishes.on_failure != FailurePolicy::kContinue, ErrorCode::kUsage,
              "--on-failure continue: with --transport ", out.transport,
              " all workers live in one process, so a failure leaves nobody to continue; use "
              "--on-failure restart, or another transport");
  return out;
}

std::vector<WorkerPlace> worker_places(const GroupPlan& plan,
                                       const std::vector<WorkerPlace>& places, Job& job) {
  if (!plan.one_process) return places;
  job.members = places;
  std::vector<std::string> labels;
  for (const WorkerPlace& place : places) labels.push_back(place.label());
  WorkerPlace all = places[0];
  all.share_index = 0;
  all.shares = {};
  all.device.selector = join(labels, " and ") + " in one process";
  return {all};
}

RunOutcome by_rank(RunOutcome outcome, const GroupPlan& plan, size_t n_ranks) {
  if (!plan.one_process) return outcome;
  outcome.done = split_members(outcome.done[0], n_ranks);
  outcome.ready = split_members(outcome.ready[0], n_ranks);
  return outcome;
}

}  // namespace netcl::app
