// Which devices a manifest's rules take.
#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/runtime/manifest.h"

namespace netcl {
using nlohmann::ordered_json;

namespace {

bool matches_text(const ordered_json& wanted, const std::string& value) {
  const auto one = [&](const ordered_json& w) {
    return w.is_string() && glob_match(to_lower(w.get<std::string>()), to_lower(value));
  };
  return wanted.is_array() ? std::any_of(wanted.begin(), wanted.end(), one) : one(wanted);
}

}  // namespace

namespace {

bool is_texts(const ordered_json& value) {
  return value.is_string() ||
         (value.is_array() && std::all_of(value.begin(), value.end(),
                                          [](const ordered_json& v) { return v.is_string(); }));
}

bool is_version(const ordered_json& value) {
  if (!value.is_string()) return false;
  const std::string text = value.get<std::string>();
  const auto digit = [&](size_t i) { return text[i] >= '0' && text[i] <= '9'; };
  return text.size() == 3 && digit(0) && text[1] == '.' && digit(2);
}

}  // namespace

std::string rule_problem(const ordered_json& rule) {
  const std::vector<std::string> members = {"vendor",
                                            "platform",
                                            "name",
                                            "arch",
                                            "type",
                                            "driver",
                                            "extensions",
                                            "cl",
                                            "min_local_mem_bytes",
                                            "min_compute_units"};
  for (const auto& item : rule.items()) {
    const std::string& key = item.key();
    const ordered_json& value = item.value();
    if (std::find(members.begin(), members.end(), key) == members.end())
      return str_cat("unknown member \"", key, "\"", suggest(key, members));
    const bool is_count = key.rfind("min_", 0) == 0;
    const bool good = is_count      ? value.is_number_integer() && value >= 0
                      : key == "cl" ? is_version(value)
                                    : is_texts(value);
    if (!good)
      return str_cat("\"", key, "\" must be ",
                     is_count      ? "a number"
                     : key == "cl" ? "a version, such as \"1.2\""
                                   : "text or a list of texts",
                     ", found ", value.dump());
  }
  return "";
}

std::optional<std::string> mismatch(const ordered_json& rule, const DeviceInfo& device) {
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"vendor", device.vendor}, {"platform", device.platform}, {"name", device.name},
      {"arch", device.arch},     {"type", device.type},         {"driver", device.driver}};
  const std::vector<std::pair<std::string, int64_t>> least = {
      {"min_local_mem_bytes", device.local_mem_bytes}, {"min_compute_units", device.compute_units}};
  for (const auto& item : rule.items()) {
    const std::string& key = item.key();
    const ordered_json& wanted = item.value();
    bool known = false;
    for (const auto& [name, value] : texts) {
      if (key != name) continue;
      known = true;
      if (!matches_text(wanted, value))
        return str_cat(key, " is \"", value, "\", wanted ", wanted.dump());
    }
    for (const auto& [name, value] : least) {
      if (key != name) continue;
      known = true;
      if (!wanted.is_number() || value < wanted.get<int64_t>())
        return str_cat(key, ": has ", value, ", wanted ", wanted.dump());
    }
    if (key == "extensions") {
      known = true;
      for (const ordered_json& extension :
           wanted.is_array() ? wanted : ordered_json::array({wanted})) {
        const std::vector<std::string> have = split(device.extensions, ' ');
        if (!extension.is_string() ||
            std::find(have.begin(), have.end(), extension) == have.end()) {
          return str_cat("extension ", extension.dump(), " is not offered");
        }
      }
    }
    if (key == "cl") {
      known = true;  // "OpenCL 3.0 ..." compares as text for one-digit versions
      const std::string have = device.opencl.size() >= 10 ? device.opencl.substr(7, 3) : "";
      if (!wanted.is_string() || have < wanted.get<std::string>())
        return str_cat("OpenCL ", have, ", wanted ", wanted.dump());
    }
    if (!known) return str_cat("unknown member \"", key, "\"");
  }
  return std::nullopt;
}

std::optional<std::string> refuses_device(const Provision& provision, const DeviceInfo& device,
                                          int* specificity) {
  for (const ordered_json& rule : provision.never) {
    if (!mismatch(rule, device)) return "the rule \"never\": " + rule.dump() + " names it";
  }
  if (specificity != nullptr) *specificity = 0;
  if (provision.match.empty()) return std::nullopt;
  std::string reason;
  for (const ordered_json& rule : provision.match) {
    const auto why = mismatch(rule, device);
    if (!why) {
      if (specificity != nullptr) *specificity = static_cast<int>(rule.size());
      return std::nullopt;
    }
    if (reason.empty()) reason = *why;
  }
  return reason;
}

}  // namespace netcl
