#include "apps/netcl_app/one_context.h"

#include <map>
#include <string>

#include "apps/netcl_app/open_device.h"
#include "core/base/environment.h"
#include "core/base/error.h"

namespace netcl::app {

namespace {

[[noreturn]] void refuse_pair(const std::vector<WorkerPlace>& places, const std::string& transport,
                              size_t rank, const std::string& why) {
  fail(ErrorCode::kPlugin, "--transport ", transport, " cannot serve this group: ranks 0 (",
       places[0].label(), ") and ", rank, " (", places[rank].label(), ") ", why,
       "; choose devices of one platform, or another transport");
}

// Which pair it is that cannot, when all together cannot.
cl::Context context_of(const std::vector<WorkerPlace>& places, const std::string& transport,
                       const std::vector<FoundDevice>& found,
                       const std::vector<FoundDevice>& different) {
  try {
    return shared_context(different);
  } catch (const Error& all) {
    for (size_t r = 1; r < places.size(); ++r) {
      if (found[r].device() == found[0].device()) continue;
      try {
        shared_context({found[0], found[r]});
      } catch (const Error& pair) {
        refuse_pair(places, transport, r, "cannot share an OpenCL context: " + pair.message());
      }
    }
    throw;
  }
}

}  // namespace

void require_one_platform(const std::vector<WorkerPlace>& places, const std::string& transport) {
  for (size_t r = 1; r < places.size(); ++r) {
    const DeviceInfo &first = places[0].device, &other = places[r].device;
    if (other.platform == first.platform && other.icd == first.icd) continue;
    refuse_pair(places, transport, r,
                "belong to two OpenCL platforms, " + first.platform + " and " + other.platform +
                    ", which share no context");
  }
}

std::vector<std::shared_ptr<Device>> open_in_one_context(const std::vector<WorkerPlace>& places,
                                                         const std::string& transport,
                                                         const Logger& log) {
  std::vector<FoundDevice> found, different;
  for (const WorkerPlace& place : places) {
    found.push_back(find_device(place.device));
    bool known = false;
    for (const FoundDevice& other : different)
      known = known || other.device() == found.back().device();
    if (!known) different.push_back(found.back());
  }
  const cl::Context context = context_of(places, transport, found, different);
  std::map<cl_device_id, std::shared_ptr<Device>> opened;
  std::vector<std::shared_ptr<Device>> out;
  for (const FoundDevice& device : found) {
    std::shared_ptr<Device>& one = opened[device.device()];
    if (one == nullptr)
      one = std::make_shared<Device>(device, context, environment::cache_dir(), log);
    out.push_back(one);
  }
  return out;
}

}  // namespace netcl::app
