#include "plugins/pack/expr.h"

#include <algorithm>
#include <limits>
#include <set>

#include "plugins/pack/expr_node.h"

namespace netcl {
namespace pack {
namespace {

class Evaluator {
 public:
  Evaluator(std::string_view text, const Scope& scope) : text_(text), scope_(scope) {}

  ExprValue value(const ExprNode& node) const {
    switch (node.op) {
      case ExprOp::kInteger:
        return node.integer;
      case ExprOp::kText:
        return node.text;
      case ExprOp::kName: {
        const auto it = scope_.find(node.text);
        if (it != scope_.end()) return it->second;
        if (node.text.compare(0, 3, "cl_") == 0) return int64_t{0};
        fail(node, "unknown name " + node.text);
      }
      case ExprOp::kChoose:
        return value(integer(*node.kids[0]) != 0 ? *node.kids[1] : *node.kids[2]);
      case ExprOp::kEqual:
        return int64_t{equal(node)};
      case ExprOp::kNotEqual:
        return int64_t{!equal(node)};
      case ExprOp::kNot:
        return int64_t{integer(*node.kids[0]) == 0};
      case ExprOp::kAnd:
        return int64_t{integer(*node.kids[0]) != 0 && integer(*node.kids[1]) != 0};
      case ExprOp::kOr:
        return int64_t{integer(*node.kids[0]) != 0 || integer(*node.kids[1]) != 0};
      case ExprOp::kNegate:
        return arithmetic(node, ExprOp::kSub, 0, integer(*node.kids[0]));
      case ExprOp::kMin:
      case ExprOp::kMax: {
        int64_t best = integer(*node.kids[0]);
        for (const auto& kid : node.kids) {
          const int64_t v = integer(*kid);
          best = node.op == ExprOp::kMin ? std::min(best, v) : std::max(best, v);
        }
        return best;
      }
      default:
        return arithmetic(node, node.op, integer(*node.kids[0]), integer(*node.kids[1]));
    }
  }

  int64_t integer(const ExprNode& node) const {
    const ExprValue v = value(node);
    if (const auto* i = std::get_if<int64_t>(&v)) return *i;
    fail(node, "an integer is wanted here, not the text '" + std::get<std::string>(v) + "'");
  }

 private:
  [[noreturn]] void fail(const ExprNode& node, const std::string& problem) const {
    throw ExprError(problem, text_, node.position);
  }

  bool equal(const ExprNode& node) const {
    const ExprValue a = value(*node.kids[0]);
    const ExprValue b = value(*node.kids[1]);
    if (a.index() != b.index()) fail(node, "text is compared with an integer");
    return a == b;
  }

  int64_t arithmetic(const ExprNode& node, ExprOp op, int64_t a, int64_t b) const {
    int64_t result = 0;
    bool overflow = false;
    switch (op) {
      case ExprOp::kAdd:
        overflow = __builtin_add_overflow(a, b, &result);
        break;
      case ExprOp::kSub:
        overflow = __builtin_sub_overflow(a, b, &result);
        break;
      case ExprOp::kMul:
        overflow = __builtin_mul_overflow(a, b, &result);
        break;
      case ExprOp::kDiv:
      case ExprOp::kMod:
      case ExprOp::kCeilDiv:
        if (b == 0) fail(node, "division by zero");
        overflow = a == std::numeric_limits<int64_t>::min() && b == -1;
        if (overflow) break;
        if (op == ExprOp::kMod) return a % b;
        // C truncates towards zero, which is already the ceiling of a negative quotient.
        return a / b + (op == ExprOp::kCeilDiv && a % b != 0 && (a < 0) == (b < 0) ? 1 : 0);
      case ExprOp::kLess:
        return a < b;
      case ExprOp::kLessEqual:
        return a <= b;
      case ExprOp::kGreater:
        return a > b;
      default:  // kGreaterEqual; value() handles every other operator
        return a >= b;
    }
    if (overflow) fail(node, "the result does not fit into 64 bits");
    return result;
  }

  std::string_view text_;
  const Scope& scope_;
};

void collect_names(const ExprNode& node, std::set<std::string>* names) {
  if (node.op == ExprOp::kName) names->insert(node.text);
  for (const auto& kid : node.kids) collect_names(*kid, names);
}

}  // namespace

ExprError::ExprError(const std::string& problem, std::string_view text, size_t position)
    : std::runtime_error(problem + ", at column " + std::to_string(position + 1) + " of `" +
                         std::string(text) + "`"),
      position_(position) {}

Expr Expr::parse(std::string_view text) {
  // A chain of operators is a tree as deep as it is long, and walking it takes stack.
  if (text.size() > kMaxLength) {
    throw ExprError("the expression has " + std::to_string(text.size()) +
                        " characters, of at most " + std::to_string(kMaxLength) + ",",
                    text.substr(0, 20), 0);
  }
  return Expr(std::string(text), parse_expr(text));
}

ExprValue Expr::evaluate(const Scope& scope) const { return Evaluator(text_, scope).value(*root_); }

int64_t Expr::integer(const Scope& scope) const { return Evaluator(text_, scope).integer(*root_); }

std::string Expr::explain(const Scope& scope) const {
  std::set<std::string> names;
  collect_names(*root_, &names);
  std::string out;
  for (const std::string& name : names) {
    const auto it = scope.find(name);
    const bool extension = name.compare(0, 3, "cl_") == 0;
    if (it == scope.end() && !extension) continue;
    if (!out.empty()) out += ' ';
    const ExprValue value = it == scope.end() ? ExprValue(int64_t{0}) : it->second;
    const auto* i = std::get_if<int64_t>(&value);
    out += name + "=" + (i != nullptr ? std::to_string(*i) : std::get<std::string>(value));
  }
  return out;
}

}  // namespace pack
}  // namespace netcl
