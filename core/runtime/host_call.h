// One call from the host into a plugin: where the plugin leaves its error, and what the opaque
// handles of the boundary are on the host's side.
#ifndef NETCL_CORE_RUNTIME_HOST_CALL_H_
#define NETCL_CORE_RUNTIME_HOST_CALL_H_

#include <cstdint>
#include <exception>
#include <string>

#include "core/abi/netcl_plugin.h"
#include "core/base/log.h"
#include "core/cl/device_info.h"

namespace netcl {
class Bootstrap;
class Device;
class Tracer;

// The table of services lent to plugins. A plugin of an earlier minor version meets the host that
// it was built for: `abi_minor` is what the table says of itself.
const netcl_host& host_table(uint32_t abi_minor = NETCL_ABI_MINOR);
}  // namespace netcl

struct netcl_call {
  std::string plugin_id, plugin_dir;
  netcl::Logger log;
  // Set by netcl_host.fail; several threads of a plugin may share a call only one after the other.
  std::string error;
  int64_t native_code = 0;
  // What a host service threw inside this call; shown in place of the plugin's own words.
  std::exception_ptr host_error;
};
struct netcl_device {
  const netcl::DeviceInfo* info = nullptr;
  netcl::Device* device = nullptr;  // null where no OpenCL is open
};
struct netcl_graph {
  netcl::Tracer* tracer = nullptr;
};
struct netcl_boot {
  netcl::Bootstrap* bootstrap = nullptr;
};

#endif  // NETCL_CORE_RUNTIME_HOST_CALL_H_
