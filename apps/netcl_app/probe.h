// Finds out which OpenCL devices there are, from a process that opens no OpenCL itself: each driver
// is asked in a child process of its own, so that one that crashes or hangs takes nothing with it.
#ifndef NETCL_APPS_NETCL_APP_PROBE_H_
#define NETCL_APPS_NETCL_APP_PROBE_H_

#include <string>
#include <vector>

#include "core/cl/device_info.h"

namespace netcl::app {

// What came of one driver.
struct DriverProbe {
  std::string icd;    // the ICD file, or "" for the loader's default
  std::string error;  // "" if it answered
  std::vector<DeviceInfo> devices;
};

struct ProbeResult {
  std::vector<DriverProbe> drivers;
  // All devices, with selectors; `icd` is set so that a worker can open this driver alone.
  std::vector<DeviceInfo> devices() const;
  // What the drivers that could not be asked say, or "".
  std::string errors() const;
  // As devices(). Errors: kDevice if there is none, with what the drivers say or what to install.
  std::vector<DeviceInfo> require_devices() const;
};

// Asks every driver of the loader's vendor directory (or of OCL_ICD_VENDORS).
ProbeResult probe_devices();

// The child's side: writes this process's devices, or {"error": ...}, as one JSON line to `fd`.
int probe_child(int fd);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_PROBE_H_
