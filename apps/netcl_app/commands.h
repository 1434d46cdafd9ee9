// The commands of netcl-app. Each adds itself to the command line; its function runs when the
// command is chosen and returns the exit code, or throws netcl::Error.
#ifndef NETCL_APPS_NETCL_APP_COMMANDS_H_
#define NETCL_APPS_NETCL_APP_COMMANDS_H_

#include <CLI/CLI.hpp>
#include <functional>

namespace netcl::app {

// Set by the chosen command.
using Run = std::function<int()>;

void add_devices_command(CLI::App& app, Run& run);
void add_plugins_command(CLI::App& app, Run& run);
void add_train_command(CLI::App& app, Run& run);
void add_eval_command(CLI::App& app, Run& run);
void add_predict_command(CLI::App& app, Run& run);
void add_generate_command(CLI::App& app, Run& run);
void add_bench_command(CLI::App& app, Run& run);
void add_tune_command(CLI::App& app, Run& run);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_COMMANDS_H_
