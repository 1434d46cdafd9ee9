#include "core/runtime/plugin_content.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <vector>

#include "core/base/file.h"
#include "core/base/json_doc.h"
#include "core/base/sha256.h"

namespace netcl {
namespace fs = std::filesystem;

namespace {

// Of each file its name and its hash.
std::string hashes_of(const std::set<fs::path>& files, const fs::path& directory) {
  std::string out;
  for (const fs::path& file : files) {
    out += file.lexically_relative(directory).string() + '\n';
    out += sha256_hex(read_file(file, ErrorCode::kPlugin)) + '\n';
  }
  return out;
}

std::string content_of_all(const Manifest& manifest) {
  std::set<fs::path> files = {manifest.library};
  std::error_code error;
  for (fs::recursive_directory_iterator it(manifest.directory, error), end; !error && it != end;
       it.increment(error)) {
    const fs::path& path = it->path();
    const std::string end_of_name = path.extension().string();
    const bool counts = end_of_name == ".json" || end_of_name == ".cl" || end_of_name == ".h";
    std::error_code ignored;
    if (counts && path.filename() != "plugin.json" && it->is_regular_file(ignored))
      files.insert(path);
  }
  NETCL_CHECK(!error, ErrorCode::kPlugin, manifest.directory.string(),
              ": cannot be read: ", error.message());
  return hashes_of(files, manifest.directory);
}

// The variants of one op of a set with a variants.json, as text, and the files that they name.
class OpOfPack {
 public:
  OpOfPack(const fs::path& directory, const std::vector<Json>& parts, const OpRow& op)
      : directory_(directory), op_(op) {
    for (const Json& part : parts) take(part);
  }

  std::string content() const { return text_ + hashes_of(sources_, directory_); }

 private:
  void take(const Json& part) {
    take(part, "ops", op_.name);
    if (!op_.family.empty()) take(part, "families", op_.family);
  }

  void take(const Json& part, const std::string& table, const std::string& name) {
    if (!part.contains(table)) return;
    for (const auto& [key, variants] : part[table].items()) {
      std::istringstream words(key);
      for (std::string word; words >> word;) {
        if (word != name) continue;
        text_ += variants.dump() + '\n';
        take_sources(variants);
      }
    }
  }

  void take_sources(const Json& value) {
    for (const auto& [key, inner] : value.items()) {
      if (key != "sources") {
        if (inner.is_structured()) take_sources(inner);
        continue;
      }
      for (const Json& source : inner) sources_.insert(directory_ / source.get<std::string>());
    }
  }

  const fs::path& directory_;
  const OpRow& op_;
  std::string text_;
  std::set<fs::path> sources_;
};

}  // namespace

PluginContents::Files PluginContents::read(const Manifest& manifest) {
  Files out;
  out.library = sha256_hex(read_file(manifest.library, ErrorCode::kPlugin));
  const auto parsed = [&](const std::string& file) {
    const fs::path path = manifest.directory / file;
    return JsonDoc::parse(read_file(path, ErrorCode::kPlugin), path.string())->root();
  };
  std::error_code error;
  if (!fs::exists(manifest.directory / manifest.variants, error)) {
    out.all = sha256_hex(content_of_all(manifest));
    return out;
  }
  out.variants.push_back(parsed(manifest.variants));
  const Json files = out.variants[0].value("files", Json::array());
  for (const Json& file : files) out.variants.push_back(parsed(file.get<std::string>()));
  return out;
}

const PluginContent& PluginContents::of(const Manifest& manifest, const OpRow& op) {
  const auto found = known_.find({manifest.id, op.name});
  if (found != known_.end()) return found->second;
  try {
    if (files_.count(manifest.id) == 0) files_.emplace(manifest.id, read(manifest));
    const Files& files = files_.at(manifest.id);
    const std::string kernels =
        files.variants.empty()
            ? files.all
            : sha256_hex(OpOfPack(manifest.directory, files.variants, op).content());
    return known_[{manifest.id, op.name}] = {kernels, files.library};
  } catch (const Json::exception& e) {
    fail(ErrorCode::kPlugin, manifest.directory.string(), ": ", manifest.variants, ": ", e.what());
  }
}

}  // namespace netcl
