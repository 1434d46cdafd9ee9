// Device selectors: which devices a run uses, how many workers share each, and with which cores.
#ifndef NETCL_CORE_DISTRIBUTED_SELECTORS_H_
#define NETCL_CORE_DISTRIBUTED_SELECTORS_H_

#include <string>
#include <vector>

#include "core/cl/device_info.h"

namespace netcl {

// One worker's place: a device, of which it has part `share_index` of `shares`.
struct WorkerPlace {
  DeviceInfo device;
  int share_index = 0;
  DeviceShares shares;

  std::string label() const;  // "cpu:0", or "cpu:0#1" for the second of several
};

// Resolves a list such as "gpu,cpu:0/2": all, gpu, cpu, gpu:0, cpu:0, pocl:0, nvidia:1, each with
// "/N" for N workers that share the device, or a CPU with "/A+B" for workers of A and of B compute
// units. `all` leaves simulators out. The same device twice is an error, and so are more compute
// units than the device has. Errors: kUsage, listing what there is; kDevice without any device.
std::vector<WorkerPlace> resolve_selectors(const std::string& text,
                                           const std::vector<DeviceInfo>& devices);
// The device of each place.
std::vector<DeviceInfo> devices_of(const std::vector<WorkerPlace>& places);

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_SELECTORS_H_
