// The launch-rule language of variants.json: integer expressions over named values.
//
//   or     : ternary, || && == != < <= > >= + - * / % ! unary -, parentheses
//   calls  : min(a, b, ...)  max(a, b, ...)  ceil_div(a, b)
//   values : integers, names, text in 'single' or "double" quotes (text knows == and != only)
//
// Integers have 64 bits. Division truncates towards zero, as in C. Comparisons give 1 or 0;
// && || and ?: evaluate only what they need. Overflow, division by zero, an unknown name and text
// where an integer is wanted are errors that carry a position. Names that begin with cl_ are
// extensions: one that the scope does not have is 0.
// Threads: an Expr is immutable and may be used by any thread.
#ifndef NETCL_PLUGINS_PACK_EXPR_H_
#define NETCL_PLUGINS_PACK_EXPR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace netcl {
namespace pack {

using ExprValue = std::variant<int64_t, std::string>;
using Scope = std::map<std::string, ExprValue, std::less<>>;

// what() ends with "at column N of `expression`"; columns count from 1.
class ExprError : public std::runtime_error {
 public:
  ExprError(const std::string& problem, std::string_view text, size_t position);
  size_t position() const { return position_; }  // from 0

 private:
  size_t position_;
};

struct ExprNode;

class Expr {
 public:
  static constexpr size_t kMaxLength = 10000;
  // Errors: ExprError.
  static Expr parse(std::string_view text);

  // Errors of all: ExprError.
  ExprValue evaluate(const Scope& scope) const;
  int64_t integer(const Scope& scope) const;
  bool truth(const Scope& scope) const { return integer(scope) != 0; }

  const std::string& text() const { return text_; }
  // "M=3 is_cpu=1": the names in the expression with their values, for refusals.
  std::string explain(const Scope& scope) const;

 private:
  Expr(std::string text, std::shared_ptr<const ExprNode> root)
      : text_(std::move(text)), root_(std::move(root)) {}
  std::string text_;
  std::shared_ptr<const ExprNode> root_;
};

}  // namespace pack
}  // namespace netcl

#endif  // NETCL_PLUGINS_PACK_EXPR_H_
