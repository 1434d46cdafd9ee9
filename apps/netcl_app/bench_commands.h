// The sub-commands of `bench` that have files of their own; see commands.h.
#ifndef NETCL_APPS_NETCL_APP_BENCH_COMMANDS_H_
#define NETCL_APPS_NETCL_APP_BENCH_COMMANDS_H_

#include "apps/netcl_app/commands.h"

namespace netcl::app {

void add_bench_allreduce(CLI::App& bench, Run& run);
void add_bench_op(CLI::App& bench, Run& run);
void add_bench_step(CLI::App& bench, Run& run);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_BENCH_COMMANDS_H_
