#include "apps/netcl_app/options.h"

#include <algorithm>
#include <iostream>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/passes.h"
#include "core/ops/op.h"
#include "core/runtime/tuned_store.h"

namespace netcl::app {

namespace {

// Names of fused ops have a dot, those of the op table none.
bool is_fused(const std::string& op) { return op.find('.') != std::string::npos; }

// Pins that commas join; those between a variant's settings are its own.
std::vector<std::string> single_pins(const std::vector<std::string>& given) {
  std::vector<std::string> out;
  for (const std::string& text : given) {
    out.emplace_back();
    bool in_settings = false;
    for (const char c : text) {
      if (c == '(' || c == ')') in_settings = c == '(';
      if (c == ',' && !in_settings) {
        out.emplace_back();
      } else {
        out.back() += c;
      }
    }
  }
  return out;
}

// ID or ID(NAME=NUMBER,...), as all kernel sets take them.
bool names_variant(const std::string& text) {
  const size_t open = text.find('(');
  if (open == std::string::npos) return text.find(')') == std::string::npos;
  if (open == 0 || text.back() != ')') return false;
  for (const std::string& setting : split(text.substr(open + 1, text.size() - open - 2), ',')) {
    const size_t equal = setting.find('=');
    if (equal == std::string::npos || equal == 0) return false;
    const size_t digits = equal + (setting.compare(equal + 1, 1, "-") == 0 ? 2 : 1);
    if (digits >= setting.size() ||
        setting.find_first_not_of("0123456789", digits) != std::string::npos)
      return false;
  }
  return true;
}

// The set must have kernels for the op, whether or not anything asks for it.
void check_offered(const std::string& op, const std::string& wanted, const PluginHost& plugins) {
  std::vector<std::string> able;
  for (const Manifest* manifest : plugins.manifests("kernels")) {
    const auto& all = manifest->provides;
    const auto offers_op = [&](const Provision& p) { return offers(p, find_op(op)); };
    if (std::any_of(all.begin(), all.end(), offers_op)) able.push_back(manifest->id);
  }
  NETCL_CHECK(std::find(able.begin(), able.end(), wanted) != able.end(), ErrorCode::kPlugin,
              "--kernels ", op, "=", wanted, ": ", wanted, " has no kernels for ", op,
              "; those that have: ", join(able, ", "));
}

// A fused op must be one for which a plugin has kernels: else the pin would be kept in vain.
void check_fused_pin(const std::string& op, const std::string& wanted, const PluginHost& plugins) {
  std::vector<std::string> known;
  for (const Manifest* manifest : plugins.manifests("kernels")) {
    for (const Provision& provision : manifest->provides) {
      if (provision.op == op) return;
      if (is_fused(provision.op)) known.push_back(provision.op);
    }
  }
  fail(ErrorCode::kUsage, "--kernels ", op, "=", wanted, ": no plugin that serves has kernels for ",
       op, suggest(op, known));
}

}  // namespace

PluginOptions CommonOptions::plugin_options() const {
  PluginOptions out;
  for (const std::string& path : plugin_paths) {
    std::error_code error;
    NETCL_CHECK(std::filesystem::is_directory(path, error), ErrorCode::kPlugin,
                "NPL-03: --plugin-path ", path, " is not a directory");
    out.paths.push_back(std::filesystem::absolute(path));
  }
  out.disable = disable_plugins;
  out.only = only_plugins;
  return out;
}

std::map<std::string, KernelPin> CommonOptions::pins() const {
  std::map<std::string, KernelPin> out;
  for (const std::string& text : single_pins(kernels)) {
    const size_t equal = text.find('=');
    NETCL_CHECK(equal != std::string::npos && equal > 0 && equal + 1 < text.size(),
                ErrorCode::kUsage, "--kernels ", text,
                ": expected OP=PLUGIN or OP=PLUGIN:VARIANT, such as matmul=generic:vec");
    // Of a fused op only plugins know; check_pins() asks them.
    const std::string given = text.substr(0, equal);
    const std::string op = is_fused(given) ? given : find_op(given).name;
    const std::vector<std::string> parts = split(text.substr(equal + 1), ':');
    NETCL_CHECK(is_fused(op) || parts[0] != KernelPin::kTrace, ErrorCode::kUsage, "--kernels ",
                text, ": ", op, " is an op of its own, not one that a layer made of others; ",
                KernelPin::kTrace, " is for ops such as \"vendor.op\"");
    NETCL_CHECK(parts.size() <= 2 && (parts.size() < 2 || names_variant(parts[1])),
                ErrorCode::kUsage, "--kernels ", text,
                ": expected a variant ID or, with settings, ID(NAME=NUMBER,...), such as "
                "matmul=generic:vec(ROWS=24)");
    out[op] = {parts[0], parts.size() > 1 ? parts[1] : ""};
  }
  return out;
}

std::set<std::string> CommonOptions::without_passes() const { return passes_named(no_pass); }

std::vector<TunedFile> CommonOptions::tuned_files(const PluginHost& plugins) const {
  return no_tuned ? std::vector<TunedFile>() : find_tuned_files(plugins);
}

void check_pins(const std::map<std::string, KernelPin>& pins, const PluginHost& plugins) {
  std::vector<std::string> ids;
  for (const Manifest* manifest : plugins.manifests("kernels")) ids.push_back(manifest->id);
  for (const auto& [op, pin] : pins) {
    const std::string& wanted = pin.plugin;
    if (is_fused(op)) check_fused_pin(op, wanted, plugins);
    if (is_fused(op) && wanted == KernelPin::kTrace) continue;
    if (std::find(ids.begin(), ids.end(), wanted) != ids.end()) {
      if (!is_fused(op)) check_offered(op, wanted, plugins);
      continue;
    }
    for (const PluginRow& row : plugins.rows()) {
      NETCL_CHECK(row.id != wanted || row.state == "serving", ErrorCode::kPlugin, "--kernels ", op,
                  "=", wanted, ": the plugin is ", row.state, " (", row.code, "): ", row.detail);
    }
    fail(ErrorCode::kPlugin, "--kernels ", op, "=", wanted, ": there is no such kernel-set plugin",
         suggest(wanted, ids));
  }
}

void add_common(CLI::App& command, CommonOptions& options) {
  command.add_flag("--json", options.json, "Print one JSON document on standard output");
  command.add_flag("--quiet,-q", options.quiet, "Print no progress");
  command
      .add_option("--plugin-path", options.plugin_paths,
                  "Directory of plugins, searched first (repeatable)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_option("--disable-plugins", options.disable_plugins, "Ids not to use, with * and ?")
      ->delimiter(',');
  command.add_option("--only-plugins", options.only_plugins, "The only ids to use, with * and ?")
      ->delimiter(',');
}

void add_kernels(CLI::App& command, CommonOptions& options) {
  command
      .add_option("--kernels", options.kernels,
                  "Pin kernels: OP=PLUGIN[:VARIANT], such as matmul=generic:vec or, with settings, "
                  "matmul=generic:vec(ROWS=24,PACK=2); repeatable, or joined by commas")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command.add_flag("--no-tuned", options.no_tuned,
                   "Choose kernels without tuned records: each set's defaults");
}

void add_passes(CLI::App& command, CommonOptions& options) {
  command
      .add_option("--no-pass", options.no_pass,
                  "Passes of the step compiler to leave out, joined by commas, or all; --explain "
                  "names them")
      ->delimiter(',');
}

Logger stderr_logger(bool quiet) {
  if (quiet) return Logger();
  return Logger([](LogLevel level, const std::string& text) {
    if (level >= LogLevel::kWarning) std::cerr << "warning: " << text << "\n";
  });
}

}  // namespace netcl::app
