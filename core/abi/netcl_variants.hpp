// netcl_variants.hpp - the variants of kernel sets in C++ and their knobs: what a set lists, and
// what it is asked for by name.
#ifndef NETCL_CORE_ABI_NETCL_VARIANTS_HPP_
#define NETCL_CORE_ABI_NETCL_VARIANTS_HPP_

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "netcl_plugin.hpp"

#pragma GCC visibility push(hidden)
namespace netcl {
namespace plugin {

// Values of a variant's tunables.
using Settings = std::vector<std::pair<std::string, int64_t>>;

struct Variant {
  std::string id, needs;  // what it needs, in words
};

// A knob of a variant: whole numbers of which `netcl-app tune` looks for the best.
struct Tunable {
  std::string name;             // "ROWS"
  std::vector<int64_t> values;  // those worth trying
  int64_t def = 0;              // used unasked; need not be among the values
};

// A variant as it is asked for: "vec", or "vec(ROWS=24,PACK=2)".
struct AskedVariant {
  std::string id;
  Settings settings;

  // Throws Decline for text of another form.
  explicit AskedVariant(std::string_view text) : id(text.substr(0, text.find('('))) {
    if (id.size() == text.size()) return;
    const auto bad = [text] {
      return Decline("\"" + std::string(text) +
                     "\" names no variant; expected ID or ID(NAME=NUMBER,...)");
    };
    if (id.empty() || text.back() != ')') throw bad();
    std::string_view rest = text.substr(id.size() + 1, text.size() - id.size() - 2);
    for (bool more = true; more;) {
      const size_t comma = rest.find(','), equal = rest.substr(0, comma).find('=');
      const std::string_view item = rest.substr(0, comma);
      if (equal == std::string_view::npos || equal == 0) throw bad();
      int64_t value = 0;
      const char* const end = item.data() + item.size();
      const auto [stop, error] = std::from_chars(item.data() + equal + 1, end, value);
      if (error != std::errc() || stop != end) throw bad();
      settings.emplace_back(item.substr(0, equal), value);
      more = comma != std::string_view::npos;
      if (more) rest.remove_prefix(comma + 1);
    }
  }

  // A value for each of the tunables of the variant *name, which gets those that differ from their
  // default behind it.
  // Throws Decline for a setting that is none of theirs.
  Settings complete(const std::vector<Tunable>& tunables, std::string* name) const {
    const std::string variant = *name;
    std::string known, differing;
    for (const Tunable& t : tunables) known += " " + t.name;
    for (const auto& setting : settings) {
      const auto is = [&](const Tunable& t) { return t.name == setting.first; };
      if (std::none_of(tunables.begin(), tunables.end(), is))
        throw Decline("variant " + variant + " has no tunable \"" + setting.first + "\"; it has" +
                      (known.empty() ? " none" : ":" + known));
    }
    Settings out;
    for (const Tunable& t : tunables) {
      int64_t value = t.def;
      std::string allowed;
      for (const auto& [setting, wanted] : settings)
        if (setting == t.name) value = wanted;
      for (const int64_t v : t.values) allowed += " " + std::to_string(v);
      const bool usual = value == t.def;
      if (!usual && std::find(t.values.begin(), t.values.end(), value) == t.values.end())
        throw Decline("variant " + variant + ": " + t.name + "=" + std::to_string(value) +
                      "; it may be" + allowed + " or " + std::to_string(t.def));
      if (!usual)
        differing += (differing.empty() ? "" : ",") + t.name + "=" + std::to_string(value);
      out.emplace_back(t.name, value);
    }
    *name = differing.empty() ? variant : variant + "(" + differing + ")";
    return out;
  }
};

}  // namespace plugin
}  // namespace netcl
#pragma GCC visibility pop

#endif  // NETCL_CORE_ABI_NETCL_VARIANTS_HPP_
