#include "core/runtime/plugin_content.h"

#include <algorithm>
#include <vector>

#include "core/base/file.h"
#include "core/base/sha256.h"

namespace netcl {
namespace fs = std::filesystem;

std::string kernels_content(const Manifest& manifest) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(manifest.directory, error), end; !error && it != end;
       it.increment(error)) {
    const fs::path& path = it->path();
    const std::string end_of_name = path.extension().string();
    const bool counts = end_of_name == ".json" || end_of_name == ".cl" || end_of_name == ".h";
    std::error_code ignored;
    if (counts && path.filename() != "plugin.json" && it->is_regular_file(ignored))
      files.push_back(path);
  }
  NETCL_CHECK(!error, ErrorCode::kPlugin, manifest.directory.string(),
              ": cannot be read: ", error.message());
  if (!fs::exists(manifest.directory / "variants.json", error)) files.push_back(manifest.library);
  std::sort(files.begin(), files.end());
  std::string all;
  for (const fs::path& file : files) {
    all += file.lexically_relative(manifest.directory).string() + '\n';
    all += sha256_hex(read_file(file, ErrorCode::kPlugin)) + '\n';
  }
  return sha256_hex(all);
}

std::string library_content(const Manifest& manifest) {
  return sha256_hex(read_file(manifest.library, ErrorCode::kPlugin));
}

}  // namespace netcl
