// The sub-commands of netcl-app plugins.
#ifndef NETCL_APPS_NETCL_APP_PLUGINS_COMMANDS_H_
#define NETCL_APPS_NETCL_APP_PLUGINS_COMMANDS_H_

#include <CLI/CLI.hpp>

#include "apps/netcl_app/commands.h"

namespace netcl::app {

void add_plugins_inspect(CLI::App& plugins, Run& run);
void add_plugins_new(CLI::App& plugins, Run& run);
void add_plugins_seal(CLI::App& plugins, Run& run);
void add_plugins_verify(CLI::App& plugins, Run& run);
void add_plugins_why(CLI::App& plugins, Run& run);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_PLUGINS_COMMANDS_H_
