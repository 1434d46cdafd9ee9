// A variant's name with settings of its tunables: "vec" or "vec(ROWS=24,DEPTH=8)".
// Threads: everything here is a pure function of its arguments.
#ifndef NETCL_PLUGINS_PACK_SETTINGS_H_
#define NETCL_PLUGINS_PACK_SETTINGS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/pack/expr.h"
#include "plugins/pack/variants.h"

namespace netcl {
namespace pack {

struct VariantName {
  std::string id;  // empty: the set's own choice
  std::vector<std::pair<std::string, int64_t>> settings;
};

// Errors: plugin::Decline for text of another form.
VariantName parse_variant_name(std::string_view text);

// Adds the variant's tunables to the scope, as `settings` say or with their defaults, in the order
// of the file (a default may use earlier ones). Returns the name with those settings that differ
// from the defaults. Errors: plugin::Decline for a tunable or a value that the variant does not
// have; Failure(NETCL_E_ARG) for a default that cannot be evaluated.
std::string add_tunables(const VariantSpec& variant,
                         const std::vector<std::pair<std::string, int64_t>>& settings,
                         Scope* scope);

}  // namespace pack
}  // namespace netcl

#endif  // NETCL_PLUGINS_PACK_SETTINGS_H_
