// Recipes of one kernel that a test writes out, to be right or wrong on purpose.
#ifndef NETCL_TESTS_VERIFY_WRITTEN_RECIPE_H_
#define NETCL_TESTS_VERIFY_WRITTEN_RECIPE_H_

#include <string>
#include <utility>
#include <vector>

#include "core/cl/recipe.h"

namespace netcl {
namespace testing {

inline RecipeArg in_arg(uint32_t index) { return {NETCL_ARG_INPUT, index, 0, 0, {}}; }
inline RecipeArg out_arg(uint32_t index) { return {NETCL_ARG_OUTPUT, index, 0, 0, {}}; }
inline RecipeArg i32_arg(int64_t value) { return {NETCL_ARG_I32, 0, value, 0, {}}; }

// `items` work-items of the kernel `run(parameters)`, whose body knows its number as i.
inline Recipe written_recipe(const std::string& parameters, const std::string& body,
                             std::vector<RecipeArg> args, uint64_t items) {
  RecipeLaunch launch;
  launch.entry = "run";
  launch.source = "__kernel void run(" + parameters +
                  ") {\n  const int i = (int)get_global_id(0);\n" + body + "\n}\n";
  launch.args = std::move(args);
  launch.global = {items, 1, 1};
  Recipe out;
  out.plugin = "test";
  out.variant = "written";
  out.launches = {std::move(launch)};
  return out;
}

}  // namespace testing
}  // namespace netcl

#endif  // NETCL_TESTS_VERIFY_WRITTEN_RECIPE_H_
