// The launch-rule language: any text is an expression or an ExprError, and any expression a value
// or an ExprError.
#include "plugins/pack/expr.h"
#include "plugins/pack/template.h"
#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const netcl::pack::Scope scope = {{"M", int64_t{7}},
                                    {"N", INT64_MIN},
                                    {"K", int64_t{0}},
                                    {"op", std::string("matmul")},
                                    {"in0_dtype", std::string("f32")}};
  try {
    const netcl::pack::Expr expr = netcl::pack::Expr::parse(text);
    expr.explain(scope);
    expr.evaluate(scope);
  } catch (const netcl::pack::ExprError& e) {
    must(e.position() <= text.size());
  }
  try {
    netcl::pack::Template::parse(text).fill(scope);
  } catch (const netcl::pack::ExprError&) {
  }
  return 0;
}
