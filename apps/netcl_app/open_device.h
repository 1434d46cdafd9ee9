// Opening one device in this process, for commands that look at it or time it.
#ifndef NETCL_APPS_NETCL_APP_OPEN_DEVICE_H_
#define NETCL_APPS_NETCL_APP_OPEN_DEVICE_H_

#include "core/cl/device.h"

namespace netcl::app {

// The device that `wanted` (from probe_devices) describes. Errors: kDevice if its driver does not
// offer it any more.
FoundDevice find_device(const DeviceInfo& wanted);

// The same for training. Kernels cut some sums (a convolution's weight gradient) by the number of
// compute units, of which a driver tells a worker its part only; `reproducible` ones are cut as on
// the whole device.
FoundDevice device_of(const DeviceInfo& wanted, bool reproducible);

// The one device that a selector names. Errors: kUsage for a list, kUsage or kDevice as
// resolve_selectors.
DeviceInfo select_one(const std::string& selector, const std::vector<DeviceInfo>& devices);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_OPEN_DEVICE_H_
