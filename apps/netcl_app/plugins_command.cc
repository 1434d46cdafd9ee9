// netcl-app plugins: the report on every plugin that was found.
#include <iostream>

#include "apps/netcl_app/commands.h"
#include "apps/netcl_app/options.h"
#include "apps/netcl_app/plugins_commands.h"
#include "apps/netcl_app/probe.h"
#include "core/base/json_doc.h"

namespace netcl::app {

namespace {

int list_plugins(const CommonOptions& options) {
  PluginHost plugins(options.plugin_options(), probe_devices().devices(),
                     stderr_logger(options.quiet));
  plugins.load_all();
  Json rows = Json::array();
  for (const PluginRow& row : plugins.rows()) {
    rows.push_back({{"id", row.id},
                    {"kind", row.kind},
                    {"version", row.version},
                    {"state", row.state},
                    {"code", row.code},
                    {"detail", row.detail},
                    {"path", row.path}});
  }
  if (options.json) {
    std::cout << Json{{"plugins", rows}}.dump(2) << "\n";
    return 0;
  }
  for (const PluginRow& row : plugins.rows()) {
    std::cout << row.id << " " << row.version << "  " << row.state << "  " << row.kind << "\n    "
              << row.path << "\n";
    if (!row.code.empty()) std::cout << "    " << row.code << ": " << row.detail << "\n";
  }
  if (plugins.rows().empty()) {
    std::cout << "no plugin was found in:";
    for (const auto& directory : plugin_directories(options.plugin_options()))
      std::cout << " " << directory.string();
    std::cout << "\n";
  }
  return 0;
}

}  // namespace

void add_plugins_command(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("plugins", "Look at the plugins, or begin a new one");
  command->require_subcommand(1);
  command->footer("Example: netcl-app plugins list");
  auto options = std::make_shared<CommonOptions>();
  CLI::App* list =
      command->add_subcommand("list", "Every plugin found, whether it serves, and why not");
  list->footer("Example: netcl-app plugins list --plugin-path ./my-plugins --json");
  add_common(*list, *options);
  list->callback([options, &run] { run = [options] { return list_plugins(*options); }; });
  add_plugins_inspect(*command, run);
  add_plugins_why(*command, run);
  add_plugins_new(*command, run);
  add_plugins_seal(*command, run);
  add_plugins_verify(*command, run);
}

}  // namespace netcl::app
