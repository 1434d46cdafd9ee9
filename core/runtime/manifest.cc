#include "core/runtime/manifest.h"

#include <algorithm>

#include "core/abi/netcl_plugin.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json_doc.h"
#include "core/base/text.h"
#include "core/runtime/file_gates.h"
#include "core/runtime/manifest_members.h"

namespace netcl {
namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr const char* kSchema = "netcl-plugin/1";
constexpr const char* kMachine = "linux-x86_64";
constexpr size_t kMaxId = 64;
constexpr uint64_t kMaxManifestBytes = 1 << 20;

const std::vector<std::string>& known_keys() {
  static const std::vector<std::string> keys = {"manifest", "id",     "version", "name",
                                                "license",  "kinds",  "library", "abi",
                                                "provides", "sha256", "data",    "config"};
  return keys;
}

// "12:5" for a byte offset.
std::string line_column(const std::string& text, size_t offset) {
  size_t line = 1, column = 1;
  for (size_t i = 0; i < std::min(offset, text.size()); ++i) {
    column = text[i] == '\n' ? 1 : column + 1;
    if (text[i] == '\n') ++line;
  }
  return str_cat(line, ":", column);
}

std::string text_of(const fs::path& path) {
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  if (error) refuse("NPL-01", path.string(), ": cannot be read: ", error.message());
  if (size > kMaxManifestBytes)
    refuse("NPL-01", path.string(), ": ", size, " bytes; a manifest has at most ",
           kMaxManifestBytes);
  try {
    return read_file(path, ErrorCode::kPlugin);
  } catch (const Error& e) {
    refuse("NPL-01", e.message());
  }
}

ordered_json parse(const fs::path& path, const std::string& text) {
  try {
    ordered_json json = ordered_json::parse(text);
    if (!json.is_object())
      refuse("NPL-01", path.string(), ":1:1: expected a JSON object, found ", json.type_name());
    JsonDoc::parse(text, path.string());  // refuses keys given twice, and what is nested too deeply
    return json;
  } catch (const ordered_json::parse_error& e) {
    refuse("NPL-01", path.string(), ":", line_column(text, e.byte > 0 ? e.byte - 1 : 0),
           ": not JSON: ", e.what());
  } catch (const ordered_json::exception& e) {  // a number that no double holds
    refuse("NPL-01", path.string(), ": not JSON: ", e.what());
  } catch (const Error& e) {
    refuse("NPL-01", e.message());
  }
}

// It becomes part of paths, messages and options.
void check_id(const std::string& id, const fs::path& path) {
  const auto is_alnum = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  const bool good = !id.empty() && id.size() <= kMaxId && is_alnum(id[0]) &&
                    std::all_of(id.begin(), id.end(), [&](char c) {
                      return is_alnum(c) || c == '_' || c == '-' || c == '.';
                    });
  if (good) return;
  refuse("NPL-01", path.string(), ": \"id\" must be 1 to ", kMaxId,
         " letters, digits, _ - and ., the first a letter or digit; found ",
         ordered_json(id).dump());
}

// "data": {"variants": "variants.json", "tuned": ["tuned/*.jsonl"]}; other members are the plugin's
// own.
void read_data(const ordered_json& json, const fs::path& path, Manifest& out) {
  if (!json.contains("data")) return;
  const ordered_json& data = json["data"];
  if (!data.is_object()) refuse("NPL-01", path.string(), ": \"data\" must be an object");
  if (data.contains("variants")) {
    const ordered_json& name = data["variants"];
    if (!name.is_string())
      refuse("NPL-01", path.string(), ": data.variants must be the name of a file, found ",
             name.dump());
    out.variants = name.get<std::string>();
    file_inside(out.directory, out.variants, "NPL-03");
  }
  if (!data.contains("tuned")) return;
  out.tuned = text_list(data["tuned"], "data.tuned", path);
  for (const std::string& glob : out.tuned) {
    const fs::path pattern(glob);
    const bool leads_out = std::find(pattern.begin(), pattern.end(), "..") != pattern.end();
    if (pattern.is_absolute() || leads_out || pattern.filename().empty())
      refuse("NPL-03", path.string(), ": data.tuned: \"", glob,
             "\" must name files below the plugin's directory, such as tuned/*.jsonl");
  }
}

void read_members(const ordered_json& json, const fs::path& path, Manifest& out) {
  out.version = text_member(json, "version", path);
  if (json.contains("name")) out.name = text_member(json, "name", path);
  if (json.contains("license")) out.license = text_member(json, "license", path);
  out.kinds = text_list(member(json, "kinds", path), "kinds", path);
  if (out.kinds.empty())
    refuse("NPL-01", path.string(), ": \"kinds\" is empty; expected kernels, layer or transport");
  for (const std::string& kind : out.kinds) {
    const std::vector<std::string> known = {"kernels", "layer", "transport"};
    if (std::find(known.begin(), known.end(), kind) == known.end()) {
      refuse("NPL-01", path.string(), ": unknown kind \"", kind, "\"", suggest(kind, known));
    }
  }
  const ordered_json& abi = member(json, "abi", path);
  for (const auto& [key, target] :
       {std::pair<const char*, uint32_t*>{"major", &out.abi_major}, {"minor", &out.abi_minor}}) {
    if (!abi.is_object() || !abi.contains(key) || !abi[key].is_number_unsigned() ||
        abi[key] > UINT32_MAX) {
      refuse("NPL-01", path.string(), ": \"abi\" must be {\"major\": N, \"minor\": N}");
    }
    *target = abi[key].get<uint32_t>();
  }
  const ordered_json& provides = member(json, "provides", path);
  if (!provides.is_array()) refuse("NPL-01", path.string(), ": \"provides\" must be a list");
  for (size_t i = 0; i < provides.size(); ++i)
    out.provides.push_back(read_provision(provides[i], i, path, &out.warnings));
  read_data(json, path, out);
  for (const auto& item : json.items()) {
    const auto& keys = known_keys();
    if (std::find(keys.begin(), keys.end(), item.key()) != keys.end()) continue;
    out.warnings.push_back(
        str_cat(path.string(), ": unknown key \"", item.key(), "\"", suggest(item.key(), keys)));
  }
}

void check_abi(const Manifest& m) {
  // 0.0 never was; from 0.1 on every minor step has only appended.
  const bool first = m.abi_major == 0 && m.abi_minor == 0;
  if (m.abi_major == NETCL_ABI_MAJOR && m.abi_minor <= NETCL_ABI_MINOR && !first) return;
  const bool newer = m.abi_major != NETCL_ABI_MAJOR ? m.abi_major > NETCL_ABI_MAJOR
                                                    : m.abi_minor > NETCL_ABI_MINOR;
  refuse("NPL-04", "plugin ", m.id, " was built for boundary ", m.abi_major, ".", m.abi_minor,
         ", this netcl has ", NETCL_ABI_MAJOR, ".", NETCL_ABI_MINOR, "; ",
         newer ? "the plugin is newer: update netcl" : "the plugin is older: rebuild it");
}

void find_library(const ordered_json& json, const fs::path& path, Manifest& out) {
  const ordered_json& libraries = member(json, "library", path);
  if (!libraries.is_object() || !libraries.contains(kMachine) || !libraries[kMachine].is_string()) {
    refuse("NPL-03", path.string(), ": \"library\" has no entry for ", kMachine);
  }
  const std::string relative = libraries[kMachine].get<std::string>();
  out.library = file_inside(out.directory, relative, "NPL-03");
}

// "sha256": {"libx.so": "<64 digits>"}, for any files of the directory.
void check_hashes(const ordered_json& json, const fs::path& path, const fs::path& directory) {
  if (!json.contains("sha256")) return;
  if (!json["sha256"].is_object())
    refuse("NPL-01", path.string(), ": \"sha256\" must be an object of file names and hashes");
  for (const auto& item : json["sha256"].items()) {
    const std::string wanted =
        item.value().is_string() ? to_lower(item.value().get<std::string>()) : "";
    check_hash(file_inside(directory, item.key(), "NPL-06"), wanted);
  }
}

// What the text says of the plugin; the result's manifest is set as soon as the id is known.
ordered_json read_claims(const fs::path& path, const std::string& text, ManifestResult* result) {
  ordered_json json = parse(path, text);
  Manifest m;
  m.directory = path.parent_path();
  m.id = text_member(json, "id", path);
  check_id(m.id, path);
  result->manifest = m;
  const std::string schema = text_member(json, "manifest", path);
  if (schema != kSchema) {
    refuse("NPL-02", path.string(), ": schema \"", schema, "\"; this netcl reads \"", kSchema,
           "\"");
  }
  read_members(json, path, m);
  result->manifest = m;
  check_abi(m);
  return json;
}

// Calls gates(path of plugin.json in the real directory, &result) and keeps what they refuse.
template <typename Gates>
ManifestResult read(const fs::path& directory, const Gates& gates) {
  ManifestResult result;
  try {
    std::error_code error;
    const fs::path real = fs::canonical(directory, error);
    if (error) refuse("NPL-01", directory.string(), ": cannot be read: ", error.message());
    gates(real / "plugin.json", &result);
  } catch (const Refused& r) {
    result.refusal = r.refusal;
  }
  return result;
}

}  // namespace

bool Manifest::has_kind(const std::string& kind) const {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

ManifestResult read_manifest(const fs::path& directory) {
  return read(directory, [](const fs::path& path, ManifestResult* result) {
    const ordered_json json = read_claims(path, text_of(path), result);
    Manifest m = *result->manifest;
    find_library(json, path, m);
    check_shared_object(m.library);
    check_hashes(json, path, m.directory);
    check_permissions(m.directory);
    result->manifest = m;
  });
}

ManifestResult check_manifest(const fs::path& directory, const std::string& text) {
  return read(directory, [&](const fs::path& path, ManifestResult* result) {
    read_claims(path, text, result);
    check_permissions(result->manifest->directory);
  });
}

}  // namespace netcl
