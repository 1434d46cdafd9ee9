// Text with $name and ${expression} holes, filled from a Scope. Immutable.
#ifndef NETCL_PLUGINS_PACK_TEMPLATE_H_
#define NETCL_PLUGINS_PACK_TEMPLATE_H_

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "plugins/pack/expr.h"

namespace netcl {
namespace pack {

class Template {
 public:
  Template() = default;
  // "$$" stands for a dollar sign. Errors: ExprError.
  static Template parse(std::string_view text);
  // Errors: ExprError.
  std::string fill(const Scope& scope) const;

 private:
  std::vector<std::variant<std::string, Expr>> pieces_;
};

}  // namespace pack
}  // namespace netcl

#endif  // NETCL_PLUGINS_PACK_TEMPLATE_H_
