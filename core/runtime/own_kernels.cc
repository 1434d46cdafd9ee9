#include "core/runtime/own_kernels.h"

#include <algorithm>
#include <optional>

#include "core/ops/op.h"

namespace netcl {

namespace {

// What passes make of an op, or "".
std::string becomes(const OpRow& op) {
  if (op.family == "elementwise") return "chain";
  if (op.name == "cross_entropy" || op.name == "cross_entropy_grad")
    return "cross_entropy_with_grad";
  return "";
}

// The rank of the first kernel set that is asked for the op on the device, if there is one.
std::optional<KernelRank> first_rank(const OpRow& op, const PluginHost& plugins,
                                     const DeviceInfo& device) {
  std::optional<KernelRank> best;
  for (const Manifest* manifest : plugins.manifests("kernels")) {
    const auto rank = rank_of(*manifest, device, [&](const Provision& p) { return offers(p, op); });
    if (rank && (!best || rank->before(*best))) best = rank;
  }
  return best;
}

}  // namespace

std::set<std::string> ops_with_own_kernels(const PluginHost& plugins,
                                           const std::vector<DeviceInfo>& devices,
                                           const std::map<std::string, KernelPin>& pins) {
  std::set<std::string> out;
  for (const auto& [op, pin] : pins) out.insert(op);
  for (const OpRow& op : op_table()) {
    const std::string whole = becomes(op);
    if (whole.empty()) continue;
    const bool own = std::any_of(devices.begin(), devices.end(), [&](const DeviceInfo& device) {
      const auto rank = first_rank(op, plugins, device);
      const auto of_whole = first_rank(find_op(whole), plugins, device);
      return rank && (!of_whole || rank->before(*of_whole));
    });
    if (own) out.insert(op.name);
  }
  return out;
}

}  // namespace netcl
