#include "core/distributed/device_manager.h"

#include "core/distributed/selectors.h"

namespace netcl {

std::vector<std::shared_ptr<Queue>> DeviceManager::queues(const std::string& selector) const {
  std::vector<std::shared_ptr<Queue>> out;
  for (const WorkerPlace& place : resolve_selectors(selector, devices())) {
    out.push_back(runtime_.queue(place.device, place.share_index, place.shares));
  }
  return out;
}

}  // namespace netcl
