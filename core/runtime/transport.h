// Which transport plugin a group opens, and how a Communicator reaches it.
#ifndef NETCL_CORE_RUNTIME_TRANSPORT_H_
#define NETCL_CORE_RUNTIME_TRANSPORT_H_

#include <string>

#include "core/collective/communicator.h"
#include "core/runtime/plugin_host.h"

namespace netcl {

// `name`: a transport's name, or "auto" for the one of highest priority (then first id).
// Returns the plugin's id. Errors: kPlugin, listing the transports there are.
std::string choose_transport(const std::string& name, const PluginHost& plugins);

// Whether the transport's ranks must live in one process with their devices in one OpenCL context,
// as its manifest says. `id`: a plugin that serves.
bool needs_one_context(const std::string& id, const PluginHost& plugins);
// The plugin of highest priority (then first id) among those that do or do not; "" if none serves.
std::string best_transport(bool one_context, const PluginHost& plugins);

// How a Communicator reaches a transport plugin, which lives until the process ends.
TransportAccess transport_access(LoadedPlugin& plugin);

}  // namespace netcl

#endif  // NETCL_CORE_RUNTIME_TRANSPORT_H_
