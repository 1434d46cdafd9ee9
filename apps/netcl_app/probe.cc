#include "apps/netcl_app/probe.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/environment.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/cl/device.h"
#include "core/distributed/process.h"

namespace netcl::app {
namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr const char* kVendors = "/etc/OpenCL/vendors";
constexpr int kTimeoutMs = 30000;
constexpr int kStatusFd = 3;

// The ICD files that the loader would open, sorted; empty if that cannot be told.
std::vector<std::string> icd_files() {
  const fs::path place = environment::icd_vendors().value_or(kVendors);
  std::error_code error;
  std::vector<std::string> out;
  if (fs::is_regular_file(place, error)) return {place.string()};
  for (const auto& entry : fs::directory_iterator(place, error)) {
    if (entry.path().extension() == ".icd") out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

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

}  // namespace

// ocl-icd takes a file as OCL_ICD_VENDORS. Khronos' loader takes directories only, finds nothing
// there, and opens the library that OCL_ICD_FILENAMES names. A loader that honours both sees one
// platform twice, which enumerate_devices notices.
std::vector<std::string> only_driver(const std::string& icd) {
  if (icd.empty()) return {};
  std::string library;
  try {
    std::istringstream lines(read_file(icd, ErrorCode::kDevice));
    std::getline(lines, library);
  } catch (const Error&) {  // the probe or the worker will say that the driver cannot be opened
  }
  while (!library.empty() && std::isspace(static_cast<unsigned char>(library.back())) != 0)
    library.pop_back();
  std::vector<std::string> out = {"OCL_ICD_VENDORS=" + icd};
  out.push_back(library.empty() ? "OCL_ICD_FILENAMES" : "OCL_ICD_FILENAMES=" + library);
  return out;
}

std::vector<DeviceInfo> ProbeResult::devices() const {
  std::vector<DeviceInfo> out;
  for (const DriverProbe& driver : drivers)
    out.insert(out.end(), driver.devices.begin(), driver.devices.end());
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
             "pocl-opencl-icd, for a GPU its vendor's");
}

ProbeResult probe_devices() {
  ProbeResult out;
  std::vector<std::string> files = icd_files();
  if (files.empty()) files.push_back("");
  for (const std::string& icd : files) out.drivers.push_back(probe_driver(icd));
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
  write_line(fd, answer.dump());
  return 0;
}

}  // namespace netcl::app
