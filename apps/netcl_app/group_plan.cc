#include "apps/netcl_app/group_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "apps/netcl_app/joined_messages.h"
#include "apps/netcl_app/one_context.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/runtime/transport.h"

namespace netcl::app {

namespace {

constexpr const char* kShared = "p2p";  // the transport that needs one process and one context

bool serves(const std::string& transport, const PluginHost& plugins) {
  const auto all = plugins.manifests("transport");
  return std::any_of(all.begin(), all.end(), [&](const Manifest* m) { return m->id == transport; });
}

// Why `auto` does not even time the shared transport; "": it does.
std::string no_candidate(const GroupWishes& wishes, const std::vector<WorkerPlace>& places,
                         const PluginHost& plugins) {
  if (!serves(kShared, plugins)) return str_cat("no plugin ", kShared, " serves");
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
  out.transport = choose_transport("auto", plugins);
  if (wishes.time == nullptr || out.transport == kShared) return out;
  if (const std::string reason = no_candidate(wishes, places, plugins); !reason.empty()) {
    out.why = str_cat(out.transport, ": ", reason);
    return out;
  }
  const TransportTimes times = wishes.time(out.transport);
  const TransportDecision decision = decide(times);
  out.probe = to_json(times);
  out.why = decision.why;
  if (decision.shared) out.transport = kShared;
  return out;
}

}  // namespace

GroupPlan plan_group(const GroupWishes& wishes, const std::vector<WorkerPlace>& places,
                     const PluginHost& plugins) {
  GroupPlan out;
  if (wishes.transport != "auto") out.transport = choose_transport(wishes.transport, plugins);
  if (places.size() == 1) return {};
  if (wishes.transport == "auto") out = automatic(wishes, places, plugins);
  out.one_process = out.transport == kShared;
  if (!out.one_process) return out;
  require_one_platform(places);
  NETCL_CHECK(wishes.on_failure != FailurePolicy::kContinue, ErrorCode::kUsage,
              "--on-failure continue: with --transport ", kShared,
              " all workers live in one process, so a failure leaves nobody to continue; use "
              "--on-failure restart, or --transport host");
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
  all.share_count = 1;
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
