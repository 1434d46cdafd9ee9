// Turns an op key and a variant into a recipe: evaluates the launch rules of variants.json.
// Everything here is a pure function of its arguments; threads: any.
#ifndef NETCL_PLUGINS_PACK_PLANNER_H_
#define NETCL_PLUGINS_PACK_PLANNER_H_

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "core/abi/netcl_plugin.hpp"
#include "plugins/pack/expr.h"
#include "plugins/pack/variants.h"

namespace netcl {
namespace pack {

// Returns the text of a source file; the reference lives as long as the plugin.
using SourceReader = std::function<const std::string&(const std::string& name)>;

// A recipe with the memory that it points into; movable, the view is made by emit().
class PlannedRecipe {
 public:
  // Errors: Decline with the first expression that refuses and its values;
  // Failure(NETCL_E_ARG) for a rule that cannot be evaluated.
  // `name`: what the recipe calls its variant.
  PlannedRecipe(const VariantSpec& variant, std::string name, const netcl_opkey& key, Scope scope,
                const SourceReader& read_source);

  // Passes a netcl_recipe to the sink; it is valid during the call.
  void emit(netcl_sink sink, void* ctx) const;

 private:
  struct Launch {
    std::string entry, options, prelude;
    std::vector<std::pair<std::string, const std::string*>> sources;
    std::vector<netcl_arg> args;
    std::vector<std::array<int32_t, 8>> vectors;  // what I32X8 arguments point to
    std::vector<uint64_t> global, local;
  };
  Launch plan_launch(const LaunchSpec& spec, const netcl_opkey& key, const Scope& scope,
                     const SourceReader& read_source) const;

  std::string id_;
  std::vector<uint64_t> scratch_bytes_;
  std::vector<Launch> launches_;
};

// The names that an op key gives to expressions.
Scope key_scope(const netcl_opkey& key);

// Adds the variant's `let` names. Errors: Failure(NETCL_E_ARG).
void add_let(const VariantSpec& variant, Scope* scope);

// Returns "" if the variant's `when` holds, otherwise why it does not.
// Errors: Failure(NETCL_E_ARG).
std::string refusal(const VariantSpec& variant, const Scope& scope);

}  // namespace pack
}  // namespace netcl

#endif  // NETCL_PLUGINS_PACK_PLANNER_H_
