// netcl-app plugins seal DIR: makes a plugin of a kernel set that is pure data. The reader that
// serves such sets is copied beside plugin.json, which is told of it and of the boundary's version.
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "apps/netcl_app/installation.h"
#include "apps/netcl_app/options.h"
#include "apps/netcl_app/plugins_commands.h"
#include "core/abi/netcl_plugin.h"
#include "core/base/file.h"
#include "core/base/json_doc.h"
#include "core/base/sha256.h"
#include "core/runtime/manifest.h"

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

int run_seal(const SealOptions& options) {
  const fs::path directory = options.directory;
  const fs::path path = directory / kManifest;
  const auto doc = JsonDoc::load(path);
  const ConfigView view(doc);
  const std::string id = view.text("id");
  const ConfigView kinds = view.list("kinds");
  if (kinds.size() != 1 || kinds[0].as_text() != "kernels")
    kinds.reject("expected [\"kernels\"]; plugins of other kinds are compiled, not sealed");
  NETCL_CHECK(fs::is_regular_file(directory / "variants.json"), ErrorCode::kUsage,
              (directory / "variants.json").string(),
              " is missing; it says which kernels there are and how they are launched");
  const std::string library = "lib" + id + ".so";
  NETCL_CHECK(fs::path(library).filename() == library, ErrorCode::kUsage, path.string(), ": id: \"",
              id, "\" cannot be part of a file's name");
  write_file_atomic(directory / library,
                    read_file(installation() / "lib/netcl/pack.so", ErrorCode::kPlugin),
                    ErrorCode::kUsage);
  Json manifest = doc->root();
  manifest["library"] = {{"linux-x86_64", library}};
  manifest["abi"] = {{"major", NETCL_ABI_MAJOR}, {"minor", NETCL_ABI_MINOR}};
  manifest.erase("sha256");
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
