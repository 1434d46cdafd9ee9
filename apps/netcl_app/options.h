// Options that several commands share, and what they stand for.
#ifndef NETCL_APPS_NETCL_APP_OPTIONS_H_
#define NETCL_APPS_NETCL_APP_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/runtime/kernel_choice.h"
#include "core/runtime/plugin_host.h"

namespace netcl::app {

struct CommonOptions {
  bool json = false, quiet = false, no_tuned = false;
  std::vector<std::string> plugin_paths, disable_plugins, only_plugins, kernels, no_pass;

  PluginOptions plugin_options() const;
  // --kernels OP=PLUGIN[:VARIANT]. Errors: kUsage.
  std::map<std::string, KernelPin> pins() const;
  // --no-pass NAME,... or all. Errors: kUsage.
  std::set<std::string> without_passes() const;
  // The files of tuned records, as they are now; none with --no-tuned.
  std::vector<TunedFile> tuned_files(const PluginHost& plugins) const;
};

// Adds --json, --quiet, --plugin-path, --disable-plugins, --only-plugins.
void add_common(CLI::App& command, CommonOptions& options);
// Adds --kernels and --no-tuned.
void add_kernels(CLI::App& command, CommonOptions& options);
// Adds --no-pass.
void add_passes(CLI::App& command, CommonOptions& options);
// Errors: kPlugin for a pin to a plugin that is no kernel set (nearest id) or does not serve (why).
void check_pins(const std::map<std::string, KernelPin>& pins, const PluginHost& plugins);

// Writes warnings to stderr unless quiet.
Logger stderr_logger(bool quiet);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_OPTIONS_H_
