// An element of a manifest's "provides".
#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/ops/op.h"
#include "core/runtime/file_gates.h"
#include "core/runtime/manifest_members.h"

namespace netcl {
namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr int kMaxPriority = 1'000'000;

// The objects of "match" or "never".
std::vector<ordered_json> read_rules(const ordered_json& json, const char* key,
                                     const std::string& where, const fs::path& path) {
  std::vector<ordered_json> out;
  if (!json.contains(key)) return out;
  if (!json[key].is_array())
    refuse("NPL-01", path.string(), ": ", where, ".", key, " must be a list of objects");
  for (const ordered_json& rule : json[key]) {
    if (!rule.is_object())
      refuse("NPL-01", path.string(), ": ", where, ".", key, " must be a list of objects");
    const std::string problem = rule_problem(rule);
    if (!problem.empty())
      refuse("NPL-01", path.string(), ": ", where, ".", key, "[", out.size(), "]: ", problem);
    out.push_back(rule);
  }
  return out;
}

// A member that is true, false or absent; it stands beside others that are named, which `fits`
// says.
bool read_flag(const ordered_json& json, const char* key, bool fits, const char* others,
               const std::string& where, const fs::path& path) {
  if (!json.contains(key)) return false;
  if (!json[key].is_boolean() || !fits) {
    refuse("NPL-01", path.string(), ": ", where, ".", key, " must be true or false, beside ",
           others);
  }
  return json[key].get<bool>();
}

// The op table's lists of names would be pages: only the nearest is said.
std::string nearest(const std::string& name, const std::vector<std::string>& known) {
  const std::string near = nearest_name(name, known);
  return near.empty() ? "; kernels/README.md lists those that there are"
                      : "; did you mean \"" + near + "\"?";
}

void warn_of_unknown(const ordered_json& json, const Provision& provision, const std::string& where,
                     std::vector<std::string>* warnings) {
  const std::vector<std::string> keys = {"op",    "family", "layer",    "transport",   "dtypes",
                                         "match", "never",  "priority", "one_context", "yields"};
  for (const auto& item : json.items()) {
    if (std::find(keys.begin(), keys.end(), item.key()) == keys.end())
      warnings->push_back(where + ": unknown key \"" + item.key() + "\"" +
                          suggest(item.key(), keys));
  }
  std::vector<std::string> ops, families;
  for (const OpRow& row : op_table()) {
    ops.push_back(row.name);
    if (!row.family.empty()) families.push_back(row.family);
  }
  const auto unknown = [](const std::string& name, const std::vector<std::string>& known) {
    return !name.empty() && std::find(known.begin(), known.end(), name) == known.end();
  };
  // Names with a dot are those of ops that layers made.
  if (unknown(provision.op, ops) && provision.op.find('.') == std::string::npos)
    warnings->push_back(where + ": unknown op \"" + provision.op + "\"" +
                        nearest(provision.op, ops));
  if (unknown(provision.family, families))
    warnings->push_back(where + ": unknown family \"" + provision.family + "\"" +
                        nearest(provision.family, families));
  for (const std::string& name : provision.dtypes) {
    try {
      dtype_named(name);
    } catch (const Error& e) {
      warnings->push_back(where + ".dtypes: " + e.message());
    }
  }
}

}  // namespace

Provision read_provision(const ordered_json& json, size_t index, const fs::path& path,
                         std::vector<std::string>* warnings) {
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
  out.match = read_rules(json, "match", where, path);
  out.never = read_rules(json, "never", where, path);
  if (json.contains("priority")) {
    const ordered_json& priority = json["priority"];
    if (!priority.is_number_integer() || priority < -kMaxPriority || priority > kMaxPriority) {
      refuse("NPL-01", path.string(), ": ", where, ".priority must be an integer of at most ",
             kMaxPriority);
    }
    out.priority = priority.get<int>();
  }
  out.one_context =
      read_flag(json, "one_context", !out.transport.empty(), "\"transport\"", where, path);
  out.yields = read_flag(json, "yields", !out.op.empty() || !out.family.empty(),
                         "\"op\" or \"family\"", where, path);
  warn_of_unknown(json, out, path.string() + ": " + where, warnings);
  return out;
}

}  // namespace netcl
