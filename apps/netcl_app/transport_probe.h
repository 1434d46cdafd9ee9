// Times, at the start of a run, what can carry its group: the staged transport beside the one of a
// shared OpenCL context.
//
// The parent opens no OpenCL: a child process (the hidden command probe-transports) measures, with
// a time limit, so that a driver that crashes or hangs takes nothing with it. What it found is kept
// in the cache directory, by devices, drivers and the content of the two plugins.
#ifndef NETCL_APPS_NETCL_APP_TRANSPORT_PROBE_H_
#define NETCL_APPS_NETCL_APP_TRANSPORT_PROBE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "apps/netcl_app/commands.h"
#include "apps/netcl_app/transport_times.h"
#include "core/distributed/selectors.h"
#include "core/runtime/plugin_host.h"

namespace netcl::app {

// The plugins: for a process a device, and for devices in one context.
struct TransportPair {
  std::string staged, shared;
};

// `places`: different devices of one platform. Whatever goes wrong is in the result.
TransportTimes probe_transports(const std::vector<WorkerPlace>& places, const TransportPair& names,
                                const PluginOptions& options, const PluginHost& plugins);
// The child's side.
void add_probe_transports_command(CLI::App& app, Run& run);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_TRANSPORT_PROBE_H_
