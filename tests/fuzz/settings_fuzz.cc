// A variant's name with settings: any text is a name or declined.
#include "core/abi/netcl_plugin.hpp"
#include "plugins/pack/settings.h"
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using netcl::pack::Expr;
  static const netcl::pack::VariantSpec variant = [] {
    netcl::pack::VariantSpec out;
    out.id = "vec";
    out.tunables.push_back({"ROWS", {2, 4}, Expr::parse("M")});
    out.tunables.push_back({"DEPTH", {8}, Expr::parse("ROWS * 2")});
    return out;
  }();
  try {
    const auto name = netcl::pack::parse_variant_name({reinterpret_cast<const char*>(data), size});
    netcl::pack::Scope scope = {{"M", int64_t{3}}};
    netcl::pack::add_tunables(variant, name.settings, &scope);
  } catch (const netcl::plugin::Decline& e) {
    must(e.what()[0] != '\0');
  }
  return 0;
}
