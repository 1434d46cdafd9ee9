// Where this program is installed.
#ifndef NETCL_APPS_NETCL_APP_INSTALLATION_H_
#define NETCL_APPS_NETCL_APP_INSTALLATION_H_

#include <filesystem>

namespace netcl::app {

// PREFIX of PREFIX/bin/netcl-app, through links.
inline std::filesystem::path installation() {
  return std::filesystem::canonical("/proc/self/exe").parent_path().parent_path();
}

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_INSTALLATION_H_
