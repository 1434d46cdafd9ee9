// netcl-app plugins seal DIR: makes a plugin of a kernel set that is pure data. The reader that
// serves such sets is copied beside plugin.json, which is told of it and of the boundary's version.
// Nothing is written before all of it has been checked.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "apps/netcl_app/installation.h"
#include "apps/netcl_app/options.h"
#include "apps/netcl_app/plugins_commands.h"
#include "core/abi/netcl_plugin.h"
#include "core/base/file.h"
#include "core/base/json_doc.h"
#include "core/base/sha256.h"
#include "core/runtime/host_call.h"
#include "core/runtime/plugin_content.h"
#include "core/runtime/plugin_host.h"

namespace netcl::app {

namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = "plugin.json";

struct SealOptions : CommonOptions {
  std::string directory;
  bool sha256 = false;
};

// Hashes of the plugin's files beside the manifest, which holds them.
Json hashes_of(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && name != kManifest) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  Json out = Json::object();
  for (const std::string& name : names)
    out[name] = sha256_hex(read_file(directory / name, ErrorCode::kUsage));
  return out;
}

// Of a pipe nobody would read the end.
void check_regular(const fs::path& path) {
  std::error_code error;
  NETCL_CHECK(!fs::is_other(path, error), ErrorCode::kUsage, path.string(), " is no regular file");
}

// "other.json" of {"data": {"variants": "other.json"}}.
std::string variants_of(const ConfigView& manifest) {
  const auto data = manifest.find("data");
  return data ? data->text_or("variants", Manifest().variants) : Manifest().variants;
}

// What the reader of such sets says of variants.json; and every source that the variants of the
// manifest's ops name must be there.
void check_kernels(Manifest manifest, const fs::path& reader) {
  manifest.library = reader;
  LoadedPlugin plugin(manifest, Logger());
  const auto& table = plugin.table<netcl_kernels_api>(NETCL_KERNELS_INTERFACE);
  const DeviceInfo info;
  netcl_device device{&info, nullptr};
  // The file is read whole at the first question, whatever that is: this one is of no op.
  netcl_opkey key{};
  key.size = sizeof(key);
  std::string words;
  const auto ignore = [](void*, const void*) { return netcl_rc{NETCL_OK}; };
  const netcl_rc rc = plugin.raw_call(
      [&](netcl_call* call) {
        return table.enumerate(plugin.self(), call, &device, &key, ignore, nullptr);
      },
      &words);
  NETCL_CHECK(rc == NETCL_OK, ErrorCode::kPlugin, words);
  PluginContents contents;
  for (const Provision& provision : manifest.provides) {
    OpRow row;
    row.name = provision.op;
    row.family = provision.family;
    contents.of(manifest, row);
  }
}

int run_seal(const SealOptions& options) {
  const fs::path directory = options.directory;
  const fs::path path = directory / kManifest;
  check_regular(path);
  const auto doc = JsonDoc::load(path);
  const ConfigView view(doc);
  const std::string id = view.text("id");
  const ConfigView kinds = view.list("kinds");
  if (kinds.size() != 1 || kinds[0].as_text() != "kernels")
    kinds.reject("expected [\"kernels\"]; plugins of other kinds are compiled, not sealed");
  for (const auto& entry : fs::recursive_directory_iterator(directory)) check_regular(entry.path());
  const fs::path variants = directory / variants_of(view);
  NETCL_CHECK(fs::is_regular_file(variants), ErrorCode::kUsage, variants.string(),
              " is missing; it says which kernels there are and how they are launched");
  const std::string library = "lib" + id + ".so";
  NETCL_CHECK(fs::path(library).filename() == library, ErrorCode::kUsage, path.string(), ": id: \"",
              id, "\" cannot be part of a file's name");
  Json manifest = doc->root();
  manifest["library"] = {{"linux-x86_64", library}};
  manifest["abi"] = {{"major", NETCL_ABI_MAJOR}, {"minor", NETCL_ABI_MINOR}};
  manifest.erase("sha256");

  // All of it is looked at before anything is written.
  const fs::path reader = installation() / "lib/netcl/pack.so";
  const std::string reader_bytes = read_file(reader, ErrorCode::kPlugin);
  const ManifestResult planned = check_manifest(directory, manifest.dump(2));
  if (planned.refusal)
    fail(ErrorCode::kPlugin, planned.refusal->code, ": ", planned.refusal->detail);
  check_kernels(*planned.manifest, reader);

  write_file_atomic(directory / library, reader_bytes, ErrorCode::kUsage);
  if (options.sha256) manifest["sha256"] = hashes_of(directory);
  write_file_atomic(path, manifest.dump(2) + "\n", ErrorCode::kUsage);
  const ManifestResult read = read_manifest(directory);
  if (read.refusal) fail(ErrorCode::kPlugin, read.refusal->code, ": ", read.refusal->detail);
  if (options.json) {
    std::cout << Json({{"id", id},
                       {"directory", fs::canonical(directory).string()},
                       {"library", library},
                       {"sha256", options.sha256}})
                     .dump(2)
              << "\n";
  } else if (!options.quiet) {
    std::cout << id << ": sealed in " << directory.string() << "\n";
  }
  return 0;
}

}  // namespace

void add_plugins_seal(CLI::App& plugins, Run& run) {
  auto options = std::make_shared<SealOptions>();
  CLI::App* command = plugins.add_subcommand(
      "seal", "Make a plugin of a kernel set of .cl files and variants.json, without a compiler");
  command->footer("Example: netcl-app plugins seal ./my-kernels --sha256");
  command
      ->add_option("DIR", options->directory,
                   "Directory of plugin.json, variants.json and .cl files")
      ->required();
  command->add_flag("--sha256", options->sha256, "Write the files' hashes into the manifest");
  command->add_flag("--json", options->json, "Print one JSON document");
  command->add_flag("--quiet", options->quiet, "Print errors alone");
  command->callback([options, &run] { run = [options] { return run_seal(*options); }; });
}

}  // namespace netcl::app
