#include "core/runtime/manifest_members.h"

#include "core/base/error.h"
#include "core/runtime/file_gates.h"

namespace netcl {
namespace fs = std::filesystem;
using nlohmann::ordered_json;

const ordered_json& member(const ordered_json& json, const char* key, const fs::path& path) {
  const auto found = json.find(key);
  if (found == json.end()) refuse("NPL-01", path.string(), ": the key \"", key, "\" is missing");
  return *found;
}

std::string text_member(const ordered_json& json, const char* key, const fs::path& path) {
  const ordered_json& value = member(json, key, path);
  if (!value.is_string() || value.get<std::string>().empty()) {
    refuse("NPL-01", path.string(), ": \"", key, "\" must be non-empty text, found ", value.dump());
  }
  return value.get<std::string>();
}

std::vector<std::string> text_list(const ordered_json& value, const std::string& key,
                                   const fs::path& path) {
  if (!value.is_array()) refuse("NPL-01", path.string(), ": \"", key, "\" must be a list of texts");
  std::vector<std::string> out;
  for (const ordered_json& item : value) {
    if (!item.is_string())
      refuse("NPL-01", path.string(), ": \"", key, "\" must be a list of texts");
    out.push_back(item.get<std::string>());
  }
  return out;
}

}  // namespace netcl
