#include "core/runtime/manifest.h"

#include <algorithm>

#include "core/abi/netcl_plugin.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json_doc.h"
#include "core/base/text.h"
#include "core/runtime/file_gates.h"

namespace netcl {
namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr const char* kSchema = "netcl-plugin/1";
constexpr const char* kMachine = "linux-x86_64";
constexpr size_t kMaxId = 64;
constexpr uint64_t kMaxManifestBytes = 1 << 20;
constexpr int kMaxPriority = 1'000'000;

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

ordered_json parse(const fs::path& path) {
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  if (error) refuse("NPL-01", path.string(), ": cannot be read: ", error.message());
  if (size > kMaxManifestBytes)
    refuse("NPL-01", path.string(), ": ", size, " bytes; a manifest has at most ",
           kMaxManifestBytes);
  std::string text;
  try {
    text = read_file(path, ErrorCode::kPlugin);
  } catch (const Error& e) {
    refuse("NPL-01", e.message());
  }
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

Provision read_provision(const ordered_json& json, size_t index, const fs::path& path) {
  const std::string where = str_cat("provides[", index, "]");
  if (!json.is_object()) refuse("NPL-01", path.string(), ": ", where, " must be an object");
  Provision out;
  int named = 0;
  for (const auto& [key, target] : {std::pair<const char*, std::string*>{"op", &out.op},
                                    {"family", &out.family},
                                    {"layer", &out.layer},
                                    {"transport", &out.transport}}) {
    if (json.contains(key)) {
      *target = text_member(json, key, path);
      ++named;
    }
  }
  if (named != 1)
    refuse("NPL-01", path.string(), ": ", where, " must have one of op, family, layer, transport");
  if (json.contains("dtypes")) out.dtypes = text_list(json["dtypes"], where + ".dtypes", path);
  for (const auto& [key, target] :
       {std::pair<const char*, std::vector<ordered_json>*>{"match", &out.match},
        {"never", &out.never}}) {
    if (!json.contains(key)) continue;
    if (!json[key].is_array())
      refuse("NPL-01", path.string(), ": ", where, ".", key, " must be a list of objects");
    for (const ordered_json& rule : json[key]) {
      if (!rule.is_object())
        refuse("NPL-01", path.string(), ": ", where, ".", key, " must be a list of objects");
      target->push_back(rule);
    }
  }
  if (json.contains("priority")) {
    const ordered_json& priority = json["priority"];
    if (!priority.is_number_integer() || priority < -kMaxPriority || priority > kMaxPriority) {
      refuse("NPL-01", path.string(), ": ", where, ".priority must be an integer of at most ",
             kMaxPriority);
    }
    out.priority = priority.get<int>();
  }
  if (json.contains("one_context")) {
    if (!json["one_context"].is_boolean() || out.transport.empty()) {
      refuse("NPL-01", path.string(), ": ", where,
             ".one_context must be true or false, beside \"transport\"");
    }
    out.one_context = json["one_context"].get<bool>();
  }
  return out;
}

// "data": {"tuned": ["tuned/*.jsonl"]}; other members are the plugin's own.
std::vector<std::string> read_tuned(const ordered_json& json, const fs::path& path) {
  if (!json.contains("data")) return {};
  if (!json["data"].is_object()) refuse("NPL-01", path.string(), ": \"data\" must be an object");
  if (!json["data"].contains("tuned")) return {};
  std::vector<std::string> out = text_list(json["data"]["tuned"], "data.tuned", path);
  for (const std::string& glob : out) {
    const fs::path pattern(glob);
    const bool leads_out = std::find(pattern.begin(), pattern.end(), "..") != pattern.end();
    if (pattern.is_absolute() || leads_out || pattern.filename().empty())
      refuse("NPL-03", path.string(), ": data.tuned: \"", glob,
             "\" must name files below the plugin's directory, such as tuned/*.jsonl");
  }
  return out;
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
    out.provides.push_back(read_provision(provides[i], i, path));
  out.tuned = read_tuned(json, path);
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

}  // namespace

bool Manifest::has_kind(const std::string& kind) const {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

ManifestResult read_manifest(const fs::path& directory) {
  ManifestResult result;
  try {
    Manifest m;
    std::error_code error;
    m.directory = fs::canonical(directory, error);
    if (error) refuse("NPL-01", directory.string(), ": cannot be read: ", error.message());
    const fs::path path = m.directory / "plugin.json";
    const ordered_json json = parse(path);
    m.id = text_member(json, "id", path);
    check_id(m.id, path);
    result.manifest = m;
    const std::string schema = text_member(json, "manifest", path);
    if (schema != kSchema) {
      refuse("NPL-02", path.string(), ": schema \"", schema, "\"; this netcl reads \"", kSchema,
             "\"");
    }
    read_members(json, path, m);
    result.manifest = m;
    check_abi(m);
    find_library(json, path, m);
    check_shared_object(m.library);
    check_hashes(json, path, m.directory);
    for (const fs::path& p : {m.directory, path, m.library}) check_permissions(p);
    result.manifest = m;
  } catch (const Refused& r) {
    result.refusal = r.refusal;
  }
  return result;
}

}  // namespace netcl
