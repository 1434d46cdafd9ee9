// netcl-app plugins new KIND NAME: writes a plugin's directory from the templates of the
// installation. A kind is a folder of share/netcl/templates; its files are laid over those of
// common/ (and common_cpp/), with placeholders filled in. plugins/templates/README.md says how a
// template is written.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>

#include "apps/netcl_app/installation.h"
#include "apps/netcl_app/options.h"
#include "apps/netcl_app/plugins_commands.h"
#include "core/abi/netcl_plugin.h"
#include "core/base/file.h"
#include "core/base/json_doc.h"
#include "core/base/text.h"
#include "core/runtime/plugin_host.h"

namespace netcl::app {

namespace {

namespace fs = std::filesystem;

// What all kinds share, and those with C++ sources; no kinds themselves.
constexpr const char* kCommon = "common";
constexpr const char* kCommonCpp = "common_cpp";
constexpr size_t kMaxName = 64;

struct NewOptions : CommonOptions {
  std::string kind, name, directory;
};

using Texts = std::map<std::string, std::string>;  // path in the new directory -> content

fs::path templates_directory() {
  const fs::path out = installation() / "share/netcl/templates";
  NETCL_CHECK(fs::is_directory(out / kCommon), ErrorCode::kPlugin,
              "the templates are missing: ", out.string(), " is expected beside ",
              (installation() / "bin").string(),
              "; unpack the whole archive and run the netcl-app in its bin");
  return out;
}

std::vector<std::string> kinds_in(const fs::path& templates) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(templates)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && name != kCommon && name != kCommonCpp) out.push_back(name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

void check_name(const NewOptions& options) {
  const std::string& name = options.name;
  const auto is_alnum = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  const bool good = !name.empty() && name.size() <= kMaxName && is_alnum(name[0]) &&
                    std::all_of(name.begin(), name.end(),
                                [&](char c) { return is_alnum(c) || c == '_' || c == '-'; });
  NETCL_CHECK(good, ErrorCode::kUsage, "NAME \"", name, "\": expected 1 to ", kMaxName,
              " letters, digits, _ and -, the first a letter or digit");
  const PluginHost plugins(options.plugin_options(), {}, stderr_logger(options.quiet));
  for (const PluginRow& row : plugins.rows()) {
    NETCL_CHECK(row.id != name, ErrorCode::kUsage, "NAME \"", name,
                "\": there is a plugin of this name in ", row.path, "; choose another");
  }
}

std::string filled(std::string text, const Texts& placeholders) {
  for (const auto& [placeholder, value] : placeholders) {
    for (size_t at = text.find(placeholder); at != std::string::npos;
         at = text.find(placeholder, at + value.size())) {
      text.replace(at, placeholder.size(), value);
    }
  }
  return text;
}

// Adds the files below `folder`; those that are there already are replaced.
void add_files(const fs::path& folder, const std::string& prefix, const Texts& placeholders,
               Texts& out) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    fs::path path = entry.path().lexically_relative(folder);
    if (path.extension() == ".in") path.replace_extension();
    out[prefix + path.string()] = filled(read_file(entry.path(), ErrorCode::kPlugin), placeholders);
  }
}

Texts files_of(const fs::path& templates, const NewOptions& options) {
  std::string ident = options.name;
  std::replace(ident.begin(), ident.end(), '-', '_');
  const Texts placeholders = {{"@NAME@", options.name},
                              {"@IDENT@", ident},
                              {"@ABI_MAJOR@", std::to_string(NETCL_ABI_MAJOR)},
                              {"@ABI_MINOR@", std::to_string(NETCL_ABI_MINOR)}};
  Texts own, out;
  add_files(templates / options.kind, "", placeholders, own);
  add_files(templates / kCommon, "", placeholders, out);
  if (std::any_of(own.begin(), own.end(),
                  [](const auto& file) { return fs::path(file.first).extension() == ".cc"; })) {
    add_files(templates / kCommonCpp, "", placeholders, out);
    add_files(installation() / "include/netcl", "sdk/", {}, out);
  }
  for (auto& [path, text] : own) out[path] = std::move(text);
  return out;
}

// Everything or nothing: the files are written to a directory beside, which then takes the name.
void write_directory(const fs::path& directory, const Texts& files) {
  fs::path whole = fs::absolute(directory).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();  // "name/"
  fs::create_directories(whole.parent_path());
  const fs::path draft = whole.string() + ".new-" + std::to_string(getpid());
  try {
    for (const auto& [path, text] : files) {
      fs::create_directories((draft / path).parent_path());
      write_file_atomic(draft / path, text, ErrorCode::kUsage);
    }
    if (fs::exists(whole)) {  // empty, and perhaps where the user stands: it stays
      for (const auto& entry : fs::directory_iterator(draft))
        fs::rename(entry.path(), whole / entry.path().filename());
      fs::remove(draft);
    } else {
      fs::rename(draft, whole);
    }
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(draft, ignored);
    throw;
  }
}

int run_new(NewOptions& options) {
  const fs::path templates = templates_directory();
  const std::vector<std::string> kinds = kinds_in(templates);
  NETCL_CHECK(std::find(kinds.begin(), kinds.end(), options.kind) != kinds.end(), ErrorCode::kUsage,
              "KIND \"", options.kind, "\" has no template", suggest(options.kind, kinds));
  check_name(options);
  if (options.directory.empty()) options.directory = options.name;
  const fs::path directory = options.directory;
  Texts files;
  try {
    NETCL_CHECK(
        !fs::exists(directory) || (fs::is_directory(directory) && fs::is_empty(directory)),
        ErrorCode::kUsage, directory.string(),
        " exists and is no empty directory; nothing was written. Choose another with --dir");
    files = files_of(templates, options);
    write_directory(directory, files);
  } catch (const fs::filesystem_error& e) {
    fail(ErrorCode::kUsage, directory.string(), ": the plugin was not written: ", e.what());
  }
  Json out = {{"kind", options.kind},
              {"name", options.name},
              {"directory", fs::canonical(directory).string()},
              {"files", Json::array()}};
  for (const auto& [path, text] : files) out["files"].push_back(path);
  if (options.json) {
    std::cout << out.dump(2) << "\n";
    return 0;
  }
  std::cout << directory.string() << ":\n";
  for (const auto& [path, text] : files) std::cout << "    " << path << "\n";
  std::cout << "Next: cd " << directory.string() << ", read README.md, run make and make check\n";
  return 0;
}

}  // namespace

void add_plugins_new(CLI::App& plugins, Run& run) {
  auto options = std::make_shared<NewOptions>();
  CLI::App* command = plugins.add_subcommand(
      "new", "Write the directory of a new plugin, which builds and passes its own check");
  command->footer("Example: netcl-app plugins new layer my_layers --dir ./my_layers");
  command->add_option("KIND", options->kind, "The kind, such as layer; a wrong one lists all")
      ->required();
  command->add_option("NAME", options->name, "The plugin's id: letters, digits, _ and -")
      ->required();
  command->add_option("--dir", options->directory, "The directory to write (default: ./NAME)");
  add_common(*command, *options);
  command->callback([options, &run] { run = [options] { return run_new(*options); }; });
}

}  // namespace netcl::app
