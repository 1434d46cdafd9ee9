#include "core/cl/device_info.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

namespace netcl {

namespace {

// Calls visit(key, member) for every member, so that both directions share one list.
template <typename Info, typename Visit>
void visit_members(Info& info, Visit&& visit) {
  visit("selector", info.selector);
  visit("name", info.name);
  visit("platform", info.platform);
  visit("platform_key", info.platform_key);
  visit("vendor", info.vendor);
  visit("type", info.type);
  visit("arch", info.arch);
  visit("driver", info.driver);
  visit("opencl", info.opencl);
  visit("extensions", info.extensions);
  visit("icd", info.icd);
  visit("platform_device", info.platform_device);
  visit("compute_units", info.compute_units);
  visit("memory_bytes", info.memory_bytes);
  visit("max_alloc_bytes", info.max_alloc_bytes);
  visit("local_mem_bytes", info.local_mem_bytes);
  visit("max_work_group", info.max_work_group);
  visit("vector_width_float", info.vector_width_float);
  visit("subgroup_min", info.subgroup_min);
  visit("subgroup_max", info.subgroup_max);
  visit("base_align_bytes", info.base_align_bytes);
  visit("unified_memory", info.unified_memory);
}

}  // namespace

DeviceShares::Range DeviceShares::range(int index, int64_t available) const {
  if (!units.empty()) {
    return {std::accumulate(units.begin(), units.begin() + index, int64_t{0}),
            units[static_cast<size_t>(index)]};
  }
  const int64_t first = index * available / count;
  return {first, std::max<int64_t>(1, (index + 1) * available / count - first)};
}

std::string DeviceShares::text() const {
  if (units.empty()) return std::to_string(count);
  std::string out;
  for (const int64_t each : units) out += (out.empty() ? "" : "+") + std::to_string(each);
  return out;
}

nlohmann::ordered_json to_json(const DeviceInfo& info) {
  nlohmann::ordered_json out;
  visit_members(info, [&](const char* key, const auto& member) { out[key] = member; });
  return out;
}

DeviceInfo device_info_from_json(const nlohmann::ordered_json& json) {
  DeviceInfo info;
  visit_members(info, [&](const char* key, auto& member) { json.at(key).get_to(member); });
  return info;
}

}  // namespace netcl
