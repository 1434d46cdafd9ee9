#include "apps/netcl_app/verify/gates.h"

#include <algorithm>

#include "apps/netcl_app/verify/elf_exports.h"
#include "core/abi/netcl_plugin.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/text.h"

namespace netcl::app::verify {

namespace {

constexpr size_t kShown = 8;  // symbols that are named

// What a refusal is about: the manifest's own words, or the files that it names.
const char* check_of(const std::string& code) {
  return code == "NPL-01" || code == "NPL-02" || code == "NPL-04" ? check::kManifest
                                                                  : check::kFiles;
}

void check_exports(const Manifest& manifest, Report& report) {
  std::vector<std::string> others;
  try {
    others = elf_exports(read_file(manifest.library, ErrorCode::kPlugin));
  } catch (const Error& e) {
    return report.failed(check::kExports, e.message());
  }
  const auto entry = std::find(others.begin(), others.end(), NETCL_OPEN_SYMBOL);
  if (entry == others.end()) {
    report.failed(check::kExports,
                  str_cat("NPL-12: ", manifest.library.string(), " does not export ",
                          NETCL_OPEN_SYMBOL, "; write NETCL_PLUGIN(YourPlugin) once in it"));
    return;
  }
  others.erase(entry);
  if (others.empty()) return report.ran(check::kExports);
  const size_t n = others.size();
  others.resize(std::min(n, kShown));
  report.failed(
      check::kExports,
      str_cat("NPL-16: ", manifest.library.string(), " exports ", n, " more than ",
              NETCL_OPEN_SYMBOL, ": ", join(others, ", "), n > kShown ? ", ..." : "",
              "; another plugin's code may be bound to them. Link with "
              "-Wl,--version-script=exports.lds, of netcl_plugin_open_v1 as the one global"));
}

}  // namespace

std::optional<Manifest> pass_gates(const std::filesystem::path& directory, Report& report) {
  const ManifestResult result = read_manifest(directory);
  if (result.refusal) {
    const char* check = check_of(result.refusal->code);
    report.failed(check, result.refusal->code + ": " + result.refusal->detail);
    if (check == check::kFiles) report.ran(check::kManifest);
    return std::nullopt;
  }
  report.ran(check::kManifest);
  for (const std::string& warning : result.manifest->warnings)
    report.note(check::kManifest, "warning: " + warning);
  report.ran(check::kFiles);
  check_exports(*result.manifest, report);
  return result.manifest;
}

std::optional<DeviceInfo> matching_device(const Manifest& manifest,
                                          const std::vector<DeviceInfo>& devices, Report& report) {
  std::vector<std::string> reasons;
  for (const DeviceInfo& device : devices) {
    if (device.type == "simulator") continue;
    std::string reason;
    bool any_kernels = false;
    for (const Provision& p : manifest.provides) {
      if (p.op.empty() && p.family.empty()) continue;
      any_kernels = true;
      const auto why = refuses_device(p, device);
      if (!why) reason.clear();
      if (!why) break;
      if (reason.empty()) reason = *why;
    }
    if (reason.empty() || !any_kernels) {
      report.ran(check::kDevice);
      report.note(check::kDevice, device.selector + " (" + device.name + ")");
      return device;
    }
    reasons.push_back(device.selector + ": " + reason);
  }
  report.failed(check::kDevice,
                reasons.empty()
                    ? "no OpenCL device was found; netcl-app devices says what is there"
                    : "NPL-08: no device matches. " + join(reasons, "; ") +
                          "; verify the plugin where there is one, or correct \"match\"");
  return std::nullopt;
}

}  // namespace netcl::app::verify
