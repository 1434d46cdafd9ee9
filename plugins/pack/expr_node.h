// The syntax tree of an expression, shared by the parser and the evaluator.
#ifndef NETCL_PLUGINS_PACK_EXPR_NODE_H_
#define NETCL_PLUGINS_PACK_EXPR_NODE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace netcl {
namespace pack {

enum class ExprOp {
  kInteger,
  kText,
  kName,
  kNot,
  kNegate,
  kMul,
  kDiv,
  kMod,
  kAdd,
  kSub,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kEqual,
  kNotEqual,
  kAnd,
  kOr,
  kChoose,  // kids: condition, then, else
  kMin,
  kMax,
  kCeilDiv,
};

struct ExprNode {
  ExprOp op = ExprOp::kInteger;
  size_t position = 0;  // of the operator or the first character, from 0
  int64_t integer = 0;  // kInteger
  std::string text;     // kText, kName
  std::vector<std::shared_ptr<const ExprNode>> kids;
};

// Errors: ExprError.
std::shared_ptr<const ExprNode> parse_expr(std::string_view text);

}  // namespace pack
}  // namespace netcl

#endif  // NETCL_PLUGINS_PACK_EXPR_NODE_H_
