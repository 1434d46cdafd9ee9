#include "apps/netcl_app/open_device.h"

#include "core/base/crash_note.h"
#include "core/base/error.h"
#include "core/distributed/selectors.h"

namespace netcl::app {

FoundDevice find_device(const DeviceInfo& wanted) {
  std::vector<FoundDevice> all = enumerate_devices();
  watch_crashes_again();  // drivers' compilers install handlers of their own
  for (FoundDevice& found : all) {
    if (found.info.platform_key == wanted.platform_key &&
        found.info.platform_device == wanted.platform_device) {
      found.info.selector = wanted.selector;
      found.info.icd = wanted.icd;
      return found;
    }
  }
  fail(ErrorCode::kDevice, "device ", wanted.selector, " (", wanted.name, ") is gone: the driver ",
       wanted.icd, " does not offer it any more");
}

FoundDevice device_of(const DeviceInfo& wanted, bool reproducible) {
  FoundDevice out = find_device(wanted);
  if (reproducible) out.info.compute_units = wanted.compute_units;
  return out;
}

DeviceInfo select_one(const std::string& selector, const std::vector<DeviceInfo>& devices) {
  const std::vector<WorkerPlace> places = resolve_selectors(selector, devices);
  NETCL_CHECK(places.size() == 1, ErrorCode::kUsage, "--device ", selector, " names ",
              places.size(), " devices; name one, such as ", places[0].device.selector);
  return places[0].device;
}

}  // namespace netcl::app
