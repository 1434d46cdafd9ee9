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

// NETCL_SAFE_MODE=1: only the plugins that netcl ships.
bool safe_mode();

// $XDG_DATA_HOME/netcl, or ~/.local/share/netcl; empty without a home.
std::filesystem::path user_data_dir();

// NETCL_CACHE_DIR, else $XDG_CACHE_HOME/netcl, else ~/.cache/netcl; empty without a home.
std::filesystem::path cache_dir();

// OCL_ICD_VENDORS as set by the user, if it is.
std::optional<std::string> icd_vendors();

// Makes this process open only the driver of one ICD file ("": all of them). Before the first
// OpenCL call, and before other threads run.
void restrict_icd(const std::string& icd);

// All variables of this process as "NAME=value", with `changes` ("NAME=value", or "NAME" to
// remove) applied: the environment of a child process.
std::vector<std::string> with_changes(const std::vector<std::string>& changes);

}  // namespace netcl::environment

#endif  // NETCL_CORE_BASE_ENVIRONMENT_H_
