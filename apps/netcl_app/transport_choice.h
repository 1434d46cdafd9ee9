// Which transport a run asks its workers to open.
#ifndef NETCL_APPS_NETCL_APP_TRANSPORT_CHOICE_H_
#define NETCL_APPS_NETCL_APP_TRANSPORT_CHOICE_H_

#include <string>

#include "core/runtime/plugin_host.h"

namespace netcl::app {

// `name`: a transport's name, or "auto" for the one of highest priority (then first id).
// Returns the plugin's id. Errors: kPlugin, listing the transports there are.
std::string choose_transport(const std::string& name, const PluginHost& plugins);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_TRANSPORT_CHOICE_H_
