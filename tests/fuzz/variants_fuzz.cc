// variants.json: any text is read or refused with a Failure that begins with the file's name; what
// is read can be planned for a key, or is refused.
#include "core/abi/netcl_plugin.hpp"
#include "plugins/pack/planner.h"
#include "plugins/pack/settings.h"
#include "plugins/pack/variants.h"
#include "tests/fuzz/target.h"

namespace netcl {
namespace pack {
namespace {

netcl_rc ignore(void*, const void*) { return NETCL_OK; }

void plan(const VariantSpec& variant) {
  static const std::string source = "__kernel void k() {}";
  netcl_desc desc{NETCL_F32, 2, {3, 5}};
  netcl_opkey key{};
  key.size = sizeof(key);
  key.op = plugin::to_abi("matmul");
  key.n_in = key.n_out = 1;
  key.in = key.out = &desc;
  try {
    Scope scope = key_scope(key);
    const std::string name = add_tunables(variant, {}, &scope);
    add_let(variant, &scope);
    if (!refusal(variant, scope).empty()) return;
    PlannedRecipe(variant, name, key, scope, [](const std::string&) -> const std::string& {
      return source;
    }).emit(&ignore, nullptr);
  } catch (const plugin::Failure& e) {
    must(e.what()[0] != '\0');
  }
}

void read(std::string_view text) {
  VariantFile file;
  try {
    file = read_variants(text, "variants.json");
  } catch (const plugin::Failure& e) {
    must(std::string_view(e.what()).substr(0, 15) == "variants.json: ");
    return;
  }
  for (const auto* table : {&file.ops, &file.families}) {
    for (const auto& [op, variants] : *table)
      for (const VariantSpec& variant : variants) plan(variant);
  }
}

}  // namespace
}  // namespace pack
}  // namespace netcl

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  netcl::pack::read({reinterpret_cast<const char*>(data), size});
  return 0;
}
