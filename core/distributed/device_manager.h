// DeviceManager: the devices of a Runtime by selector, as queues to compute on.
#ifndef NETCL_CORE_DISTRIBUTED_DEVICE_MANAGER_H_
#define NETCL_CORE_DISTRIBUTED_DEVICE_MANAGER_H_

#include <memory>
#include <string>
#include <vector>

#include "core/runtime/runtime.h"

namespace netcl {

class DeviceManager {
 public:
  explicit DeviceManager(Runtime& runtime) : runtime_(runtime) {}

  // All devices, simulators included; their `selector` is what queues() takes.
  const std::vector<DeviceInfo>& devices() const { return runtime_.devices(); }

  // A queue for each device that the selector names: "all" (but no simulator), "gpu", "cpu:0",
  // "pocl:0", a list "gpu,cpu:0"; "/N" gives N queues that share a device ("cpu:0/2", see
  // Runtime::queue). Errors: kUsage, listing what there is; kDevice.
  std::vector<std::shared_ptr<Queue>> queues(const std::string& selector = "all") const;

 private:
  Runtime& runtime_;
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_DEVICE_MANAGER_H_
