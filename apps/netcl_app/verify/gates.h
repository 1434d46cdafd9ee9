// The checks that run no code of the plugin: its manifest, its files, what its library exports.
#ifndef NETCL_APPS_NETCL_APP_VERIFY_GATES_H_
#define NETCL_APPS_NETCL_APP_VERIFY_GATES_H_

#include <filesystem>
#include <optional>

#include "apps/netcl_app/verify/report.h"

namespace netcl::app::verify {

// Returns the manifest if the plugin may be opened. Errors: none; what is wrong is in the report.
std::optional<Manifest> pass_gates(const std::filesystem::path& directory, Report& report);

// The first device of `devices` (simulators do not count) that the plugin's kernels are for;
// nullopt, with a finding, if there is none.
std::optional<DeviceInfo> matching_device(const Manifest& manifest,
                                          const std::vector<DeviceInfo>& devices, Report& report);

}  // namespace netcl::app::verify

#endif  // NETCL_APPS_NETCL_APP_VERIFY_GATES_H_
