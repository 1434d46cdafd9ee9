// netcl-app tune check: whether tuned records are what they should be.
#ifndef NETCL_APPS_NETCL_APP_TUNE_TUNE_CHECK_COMMAND_H_
#define NETCL_APPS_NETCL_APP_TUNE_TUNE_CHECK_COMMAND_H_

#include "apps/netcl_app/commands.h"

namespace netcl::app {

void add_tune_check(CLI::App& tune, Run& run);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_TUNE_TUNE_CHECK_COMMAND_H_
