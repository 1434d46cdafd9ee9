#include "apps/netcl_app/probe.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/environment.h"
#include "core/base/error.h"
#include "core/cl/device.h"
#include "core/cl/icd.h"
#include "core/distributed/process.h"

namespace netcl::app {
namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr int kTimeoutMs = 30000;
constexpr int kStatusFd = 3;

DriverProbe read_answer(const std::string& icd, const std::vector<std::string>& lines,
                        const std::string& ended) {
  DriverProbe out;
  out.icd = icd;
  if (lines.empty()) {
    out.error = "the driver's probe ended without an answer: " + ended;
    return out;
  }
  const ordered_json answer = ordered_json::parse(lines.back());
  out.error = answer.value("error", "");
  for (const ordered_json& device : answer.value("devices", ordered_json::array())) {
    out.devices.push_back(device_info_from_json(device));
    out.devices.back().icd = icd;
  }
  return out;
}

DriverProbe probe_driver(const std::string& icd) {
  SpawnOptions options;
  options.argv = {fs::canonical("/proc/self/exe").string(), "probe-child"};
  options.environment = environment::with_changes(only_driver(icd));
  options.status_fd = kStatusFd;
  ChildProcess child(options);
  LineReader reader(child.status_fd());
  std::vector<std::string> lines;
  while (!reader.at_end()) {
    const Ready ready = wait_any({}, {child.status_fd()}, kTimeoutMs);
    if (ready.timed_out()) {
      child.kill();
      return {icd, str_cat("no answer within ", kTimeoutMs / 1000, " s"), {}};
    }
    for (std::string& line : reader.read_lines()) lines.push_back(std::move(line));
  }
  const auto status = child.wait(kTimeoutMs);
  return read_answer(icd, lines, status ? status->describe() : "it does not end");
}

// Whether two drivers show the same device: the same library may be installed under two names.
// Devices of one driver that look alike are different ones.
bool same_device(const DeviceInfo& a, const DeviceInfo& b) {
  return a.icd != b.icd && a.platform == b.platform && a.driver == b.driver && a.name == b.name &&
         a.platform_device == b.platform_device;
}

}  // namespace

std::vector<DeviceInfo> ProbeResult::devices() const {
  std::vector<DeviceInfo> out;
  for (const DriverProbe& driver : drivers) {
    for (const DeviceInfo& device : driver.devices) {
      const bool known = std::any_of(out.begin(), out.end(), [&](const DeviceInfo& other) {
        return same_device(device, other);
      });
      if (!known) out.push_back(device);
    }
  }
  std::vector<DeviceInfo*> all;
  for (DeviceInfo& info : out) all.push_back(&info);
  assign_selectors(all);
  return out;
}

std::string ProbeResult::errors() const {
  std::string out;
  for (const DriverProbe& driver : drivers) {
    if (driver.error.empty()) continue;
    out +=
        str_cat(out.empty() ? "" : "; ", driver.icd, driver.icd.empty() ? "" : ": ", driver.error);
  }
  return out;
}

std::vector<DeviceInfo> ProbeResult::require_devices() const {
  std::vector<DeviceInfo> out = devices();
  if (!out.empty()) return out;
  const std::string reasons = errors();
  fail(ErrorCode::kDevice,
       !reasons.empty()
           ? reasons
           : "no OpenCL device was found. Install a driver: for a CPU the Debian package "
             "pocl-opencl-icd, for a GPU its vendor's. A driver that cannot write its cache "
             "(POCL_CACHE_DIR, XDG_CACHE_HOME or HOME) shows no device");
}

ProbeResult probe_devices() {
  ProbeResult out;
  std::vector<std::string> drivers = icd_drivers();
  if (drivers.empty()) drivers.push_back("");
  for (const std::string& icd : drivers) out.drivers.push_back(probe_driver(icd));
  return out;
}

int probe_child(int fd) {
  ordered_json answer;
  try {
    answer["devices"] = ordered_json::array();
    for (const FoundDevice& found : enumerate_devices())
      answer["devices"].push_back(to_json(found.info));
  } catch (const Error& e) {
    answer["error"] = e.message();
  }
  try {
    write_line(fd, answer.dump());
  } catch (const Error&) {  // the parent was interrupted: nobody asks any more
    return exit_code(ErrorCode::kInterrupted);
  }
  return 0;
}

}  // namespace netcl::app
