// The only reader of environment variables; each variable that netcl knows has a function here.
#ifndef NETCL_CORE_BASE_ENVIRONMENT_H_
#define NETCL_CORE_BASE_ENVIRONMENT_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace netcl::environment {

// NETCL_PLUGIN_PATH: directories separated by ':', which replace the default places.
std::optional<std::vector<std::filesystem::path>> plugin_path();

// NETCL_SAFE_MODE=1: only the plugins that netcl ships, and no tuned records.
bool safe_mode();

// $XDG_DATA_HOME/netcl, or ~/.local/share/netcl; empty without a home.
std::filesystem::path user_data_dir();

// NETCL_CACHE_DIR, else $XDG_CACHE_HOME/netcl, else ~/.cache/netcl; empty without a home.
std::filesystem::path cache_dir();

// OCL_ICD_VENDORS as set by the user, if it is: where the OpenCL loader finds its drivers.
std::optional<std::string> icd_vendors();

// OCL_ICD_FILENAMES: libraries of further drivers, which Khronos' loader opens.
std::vector<std::string> icd_filenames();

// NETCL_FAULTS: what a test wants to go wrong in the workers; empty if unset.
std::string faults();

// Applies changes ("NAME=value", or "NAME" to remove) to this process. Before other threads run.
void apply(const std::vector<std::string>& changes);

// All variables of this process as "NAME=value", with `changes` ("NAME=value", or "NAME" to
// remove) applied: the environment of a child process.
std::vector<std::string> with_changes(const std::vector<std::string>& changes);

}  // namespace netcl::environment

#endif  // NETCL_CORE_BASE_ENVIRONMENT_H_
