#include "core/distributed/selectors.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"

namespace netcl {

namespace {

constexpr int kMaxShare = 64;

std::string list_of(const std::vector<DeviceInfo>& devices) {
  std::vector<std::string> lines;
  for (const DeviceInfo& d : devices) {
    const std::string also =
        d.selector == d.platform_selector() ? "" : " or " + d.platform_selector();
    lines.push_back(d.selector + also + " (" + d.name + ")");
  }
  return join(lines, ", ");
}

// Splits "cpu:0/2" into the name and 2.
int take_share(std::string& part, const std::string& text) {
  const size_t slash = part.find('/');
  if (slash == std::string::npos) return 1;
  const std::string number = part.substr(slash + 1);
  part.resize(slash);
  int share = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), share);
  NETCL_CHECK(error == std::errc() && end == number.data() + number.size() && share >= 1 &&
                  share <= kMaxShare,
              ErrorCode::kUsage, "--devices ", text, ": \"/", number,
              "\": expected a number of workers from 1 to ", kMaxShare);
  return share;
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
  return share_count == 1 ? device.selector : str_cat(device.selector, "#", share_index);
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
    const int share = take_share(part, text);
    const auto found = matching(part, devices);
    NETCL_CHECK(!found.empty(), ErrorCode::kUsage, "--devices ", text, ": there is no device \"",
                part, "\"; there are: ", list_of(devices));
    for (const DeviceInfo* device : found) {
      NETCL_CHECK(used.insert(device->platform_selector()).second, ErrorCode::kUsage, "--devices ",
                  text, ": ", device->selector, " is named twice; write ", device->selector,
                  "/2 for two workers on it");
      for (int i = 0; i < share; ++i) out.push_back({*device, i, share});
    }
  }
  return out;
}

}  // namespace netcl
