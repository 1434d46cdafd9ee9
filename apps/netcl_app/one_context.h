// Devices of one process in one OpenCL context.
#ifndef NETCL_APPS_NETCL_APP_ONE_CONTEXT_H_
#define NETCL_APPS_NETCL_APP_ONE_CONTEXT_H_

#include <memory>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/cl/device.h"
#include "core/distributed/selectors.h"

namespace netcl::app {

// Errors: kPlugin, naming the first pair, for places on devices of two OpenCL platforms.
// `transport`: which needs them on one, for messages.
void require_one_platform(const std::vector<WorkerPlace>& places, const std::string& transport);

// The device of each place; places on the same device have the same one, with one program cache.
// Errors: kPlugin, naming the first pair whose driver cannot share a context; kDevice.
std::vector<std::shared_ptr<Device>> open_in_one_context(const std::vector<WorkerPlace>& places,
                                                         const std::string& transport,
                                                         const Logger& log);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_ONE_CONTEXT_H_
