#include "plugins/pack/settings.h"

#include <algorithm>
#include <charconv>

#include "core/abi/netcl_plugin.hpp"

namespace netcl {
namespace pack {
namespace {

[[noreturn]] void bad_form(std::string_view text) {
  throw plugin::Decline("\"" + std::string(text) +
                        "\" names no variant; expected ID or ID(NAME=NUMBER,...)");
}

std::string listed(const TunableSpec& tunable) {
  std::string out;
  for (const int64_t value : tunable.values) out += " " + std::to_string(value);
  return out;
}

void check_known(const VariantSpec& variant,
                 const std::vector<std::pair<std::string, int64_t>>& settings) {
  for (size_t i = 0; i < settings.size(); ++i) {
    std::string known;
    bool found = false;
    for (const TunableSpec& tunable : variant.tunables) {
      known += " " + tunable.name;
      found = found || tunable.name == settings[i].first;
    }
    if (!found) {
      throw plugin::Decline("variant " + variant.id + " has no tunable \"" + settings[i].first +
                            "\"; it has" + (known.empty() ? " none" : ":" + known));
    }
    for (size_t j = 0; j < i; ++j) {
      if (settings[j].first == settings[i].first)
        throw plugin::Decline("the tunable " + settings[i].first + " is set twice");
    }
  }
}

}  // namespace

VariantName parse_variant_name(std::string_view text) {
  const size_t open = text.find('(');
  VariantName out{std::string(text.substr(0, open)), {}};
  if (open == std::string_view::npos) return out;
  if (out.id.empty() || text.back() != ')') bad_form(text);
  std::string_view rest = text.substr(open + 1, text.size() - open - 2);
  while (true) {
    const size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const size_t equal = item.find('=');
    if (equal == std::string_view::npos || equal == 0) bad_form(text);
    int64_t value = 0;
    const char* const end = item.data() + item.size();
    const auto [stop, error] = std::from_chars(item.data() + equal + 1, end, value);
    if (error != std::errc() || stop != end) bad_form(text);
    out.settings.emplace_back(item.substr(0, equal), value);
    if (comma == std::string_view::npos) return out;
    rest.remove_prefix(comma + 1);
  }
}

std::string add_tunables(const VariantSpec& variant,
                         const std::vector<std::pair<std::string, int64_t>>& settings,
                         Scope* scope) {
  check_known(variant, settings);
  std::string differing;
  for (const TunableSpec& tunable : variant.tunables) {
    int64_t value = 0;
    try {
      value = tunable.def.integer(*scope);
    } catch (const ExprError& e) {
      throw plugin::Failure(
          NETCL_E_ARG, "variant " + variant.id + ", tunables " + tunable.name + ": " + e.what());
    }
    const int64_t def = value;
    for (const auto& [name, setting] : settings) {
      if (name == tunable.name) value = setting;
    }
    const auto& values = tunable.values;
    if (value != def && std::find(values.begin(), values.end(), value) == values.end()) {
      throw plugin::Decline("variant " + variant.id + ": " + tunable.name + "=" +
                            std::to_string(value) + "; it may be" + listed(tunable) + " or " +
                            std::to_string(def));
    }
    (*scope)[tunable.name] = value;
    if (value != def) {
      differing += (differing.empty() ? "" : ",") + tunable.name + "=" + std::to_string(value);
    }
  }
  return differing.empty() ? variant.id : variant.id + "(" + differing + ")";
}

}  // namespace pack
}  // namespace netcl
