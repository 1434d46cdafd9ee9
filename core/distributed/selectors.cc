#include "core/distributed/selectors.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"

namespace netcl {

namespace {

constexpr size_t kMaxShare = 64;
constexpr int64_t kMaxUnits = int64_t{1} << 20;

std::string list_of(const std::vector<DeviceInfo>& devices) {
  std::vector<std::string> lines;
  for (const DeviceInfo& d : devices) {
    const std::string also =
        d.selector == d.platform_selector() ? "" : " or " + d.platform_selector();
    lines.push_back(d.selector + also + " (" + d.name + ")");
  }
  return join(lines, ", ");
}

int64_t share_number(const std::string& number, const std::string& text, const char* expected,
                     int64_t most) {
  int64_t out = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), out);
  NETCL_CHECK(
      error == std::errc() && end == number.data() + number.size() && out >= 1 && out <= most,
      ErrorCode::kUsage, "--devices ", text, ": \"", number, "\" after \"/\": expected ", expected,
      " from 1 to ", most);
  return out;
}

// Splits "cpu:0/2" into the name and two even parts, "cpu:0/4+12" into it and parts of 4 and 12.
DeviceShares take_shares(std::string& part, const std::string& text) {
  const size_t slash = part.find('/');
  if (slash == std::string::npos) return {};
  const std::string numbers = part.substr(slash + 1);
  part.resize(slash);
  const std::vector<std::string> sizes = split(numbers, '+');
  if (sizes.size() == 1) {
    return static_cast<int>(share_number(numbers, text, "a number of workers", kMaxShare));
  }
  NETCL_CHECK(sizes.size() <= kMaxShare, ErrorCode::kUsage, "--devices ", text, ": ", sizes.size(),
              " workers on one device; at most ", kMaxShare);
  std::vector<int64_t> units;
  for (const std::string& size : sizes) {
    units.push_back(share_number(size, text, "a worker's compute units", kMaxUnits));
  }
  return DeviceShares(std::move(units));
}

// Parts of given sizes are those of a processor, and must fit in it.
void check_sizes(const DeviceInfo& device, const DeviceShares& shares, const std::string& text) {
  if (shares.units.empty()) return;
  NETCL_CHECK(device.type == "cpu", ErrorCode::kUsage, "--devices ", text, ": ", device.selector,
              " (", device.name, ") is no CPU, so it has no cores to deal out; write ",
              device.selector, "/", shares.count, " for ", shares.count, " workers on it");
  const int64_t sum = std::accumulate(shares.units.begin(), shares.units.end(), int64_t{0});
  NETCL_CHECK(sum <= device.compute_units, ErrorCode::kUsage, "--devices ", text, ": ",
              shares.text(), " are ", sum, " compute units, but ", device.selector, " (",
              device.name, ") has ", device.compute_units);
}

std::vector<const DeviceInfo*> matching(const std::string& name,
                                        const std::vector<DeviceInfo>& devices) {
  std::vector<const DeviceInfo*> out;
  for (const DeviceInfo& d : devices) {
    const bool real = d.type == "gpu" || d.type == "cpu" || d.type == "accelerator";
    if ((name == "all" && real) || name == d.type || name == d.selector ||
        name == d.platform_selector() || name == d.platform_key) {
      out.push_back(&d);
    }
  }
  return out;
}

}  // namespace

std::string WorkerPlace::label() const {
  return shares.count == 1 ? device.selector : str_cat(device.selector, "#", share_index);
}

std::vector<WorkerPlace> resolve_selectors(const std::string& text,
                                           const std::vector<DeviceInfo>& devices) {
  NETCL_CHECK(!devices.empty(), ErrorCode::kDevice,
              "no OpenCL device was found. Install a driver: for a CPU the Debian package "
              "pocl-opencl-icd, for a GPU "
              "its vendor's; `netcl-app devices` shows what is found");
  std::vector<WorkerPlace> out;
  std::set<std::string> used;
  for (std::string part : split(text, ',')) {
    const DeviceShares shares = take_shares(part, text);
    const auto found = matching(part, devices);
    NETCL_CHECK(!found.empty(), ErrorCode::kUsage, "--devices ", text, ": there is no device \"",
                part, "\"; there are: ", list_of(devices));
    for (const DeviceInfo* device : found) {
      NETCL_CHECK(used.insert(device->platform_selector()).second, ErrorCode::kUsage, "--devices ",
                  text, ": ", device->selector, " is named twice; write ", device->selector,
                  "/2 for two workers on it");
      check_sizes(*device, shares, text);
      for (int i = 0; i < shares.count; ++i) out.push_back({*device, i, shares});
    }
  }
  return out;
}

std::vector<DeviceInfo> devices_of(const std::vector<WorkerPlace>& places) {
  std::vector<DeviceInfo> out;
  for (const WorkerPlace& place : places) out.push_back(place.device);
  return out;
}

}  // namespace netcl
