// Opening one device in this process, for commands that look at it or time it.
#ifndef NETCL_APPS_NETCL_APP_OPEN_DEVICE_H_
#define NETCL_APPS_NETCL_APP_OPEN_DEVICE_H_

#include "core/cl/device.h"

namespace netcl::app {

// The device that `wanted` (from probe_devices) describes. Errors: kDevice if its driver does not
// offer it any more.
FoundDevice find_device(const DeviceInfo& wanted);

// The one device that a selector names. Errors: kUsage for a list, kUsage or kDevice as
// resolve_selectors.
DeviceInfo select_one(const std::string& selector, const std::vector<DeviceInfo>& devices);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_OPEN_DEVICE_H_
