#include "core/runtime/own_kernels.h"

#include <algorithm>
#include <utility>

#include "core/ops/op.h"

namespace netcl {

namespace {

constexpr int kNobody = -1;

// What passes make of an op, or "".
std::string becomes(const OpRow& op) {
  if (op.family == "elementwise") return "chain";
  if (op.name == "cross_entropy" || op.name == "cross_entropy_grad")
    return "cross_entropy_with_grad";
  return "";
}

// Specificity and priority of the first kernel set that is asked for the op on the device.
std::pair<int, int> rank_of(const OpRow& op, const PluginHost& plugins, const DeviceInfo& device) {
  std::pair<int, int> best = {kNobody, 0};
  for (const Manifest* manifest : plugins.manifests("kernels")) {
    for (const Provision& provision : manifest->provides) {
      int specificity = 0;
      if (offers(provision, op) && !refuses_device(provision, device, &specificity))
        best = std::max(best, {specificity, provision.priority});
    }
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
      return rank_of(op, plugins, device) > rank_of(find_op(whole), plugins, device);
    });
    if (own) out.insert(op.name);
  }
  return out;
}

}  // namespace netcl
