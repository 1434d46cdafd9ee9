// Device selectors: which devices a run uses, and how many workers share each.
#ifndef NETCL_CORE_DISTRIBUTED_SELECTORS_H_
#define NETCL_CORE_DISTRIBUTED_SELECTORS_H_

#include <string>
#include <vector>

#include "core/cl/device_info.h"

namespace netcl {

// One worker's place: a device, of which it is worker `share_index` of `share_count`.
struct WorkerPlace {
  DeviceInfo device;
  int share_index = 0, share_count = 1;

  std::string label() const;  // "cpu:0", or "cpu:0#1" for the second of several
};

// Resolves a list such as "gpu,cpu:0/2": all, gpu, cpu, gpu:0, cpu:0, pocl:0, nvidia:1, each with
// "/N" for N workers that share the device. `all` leaves simulators out. The same device twice is
// an error. Errors: kUsage, listing what there is; kDevice if there is no device at all.
std::vector<WorkerPlace> resolve_selectors(const std::string& text,
                                           const std::vector<DeviceInfo>& devices);

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_SELECTORS_H_
