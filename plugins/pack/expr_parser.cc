// Recursive descent over the tokens; binary operators by precedence climbing.
#include <map>
#include <utility>

#include "plugins/pack/expr.h"
#include "plugins/pack/expr_lexer.h"
#include "plugins/pack/expr_node.h"

namespace netcl {
namespace pack {
namespace {

using NodePtr = std::shared_ptr<const ExprNode>;

// Deep enough for any rule, shallow enough for any stack.
constexpr int kMaxDepth = 100;

struct Binary {
  ExprOp op;
  int precedence;
};

const Binary* find_binary(const Token& token) {
  static const std::map<std::string, Binary> table = {
      {"||", {ExprOp::kOr, 1}},     {"&&", {ExprOp::kAnd, 2}},
      {"==", {ExprOp::kEqual, 3}},  {"!=", {ExprOp::kNotEqual, 3}},
      {"<", {ExprOp::kLess, 4}},    {"<=", {ExprOp::kLessEqual, 4}},
      {">", {ExprOp::kGreater, 4}}, {">=", {ExprOp::kGreaterEqual, 4}},
      {"+", {ExprOp::kAdd, 5}},     {"-", {ExprOp::kSub, 5}},
      {"*", {ExprOp::kMul, 6}},     {"/", {ExprOp::kDiv, 6}},
      {"%", {ExprOp::kMod, 6}},
  };
  if (token.kind != TokenKind::kSymbol) return nullptr;
  const auto it = table.find(token.text);
  return it == table.end() ? nullptr : &it->second;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), tokens_(tokenize(text)) {}

  NodePtr parse() {
    NodePtr root = ternary();
    if (peek().kind != TokenKind::kEnd) fail("expected an operator or the end");
    return root;
  }

 private:
  const Token& peek() const { return tokens_[next_]; }
  bool accept(const char* symbol) {
    if (peek().kind != TokenKind::kSymbol || peek().text != symbol) return false;
    ++next_;
    return true;
  }
  void expect(const char* symbol) {
    if (!accept(symbol)) fail("expected '" + std::string(symbol) + "'");
  }
  [[noreturn]] void fail(const std::string& problem) const {
    throw ExprError(problem, text_, peek().position);
  }
  static NodePtr make(ExprOp op, size_t position, std::vector<NodePtr> kids) {
    auto node = std::make_shared<ExprNode>();
    node->op = op;
    node->position = position;
    node->kids = std::move(kids);
    return node;
  }

  NodePtr ternary() {
    if (++depth_ > kMaxDepth) fail("the expression is nested too deeply");
    NodePtr result = binary(1);
    const size_t position = peek().position;
    if (accept("?")) {
      NodePtr yes = ternary();
      expect(":");
      NodePtr no = ternary();
      result = make(ExprOp::kChoose, position, {result, yes, no});
    }
    --depth_;
    return result;
  }

  NodePtr binary(int min_precedence) {
    NodePtr left = unary();
    while (const Binary* op = find_binary(peek())) {
      if (op->precedence < min_precedence) break;
      const size_t position = peek().position;
      ++next_;
      left = make(op->op, position, {left, binary(op->precedence + 1)});
    }
    return left;
  }

  NodePtr unary() {
    if (++depth_ > kMaxDepth) fail("the expression is nested too deeply");
    const size_t position = peek().position;
    NodePtr result;
    if (accept("!")) {
      result = make(ExprOp::kNot, position, {unary()});
    } else if (accept("-")) {
      result = make(ExprOp::kNegate, position, {unary()});
    } else {
      result = primary();
    }
    --depth_;
    return result;
  }

  NodePtr primary() {
    const Token token = peek();
    if (accept("(")) {
      NodePtr inner = ternary();
      expect(")");
      return inner;
    }
    if (token.kind == TokenKind::kEnd || token.kind == TokenKind::kSymbol) {
      fail("expected a number, a name or '('");
    }
    ++next_;
    if (token.kind == TokenKind::kName && accept("(")) return call(token);
    auto node = std::make_shared<ExprNode>();
    node->position = token.position;
    node->integer = token.integer;
    node->text = token.text;
    node->op = token.kind == TokenKind::kInteger ? ExprOp::kInteger
               : token.kind == TokenKind::kText  ? ExprOp::kText
                                                 : ExprOp::kName;
    return node;
  }

  NodePtr call(const Token& name) {
    std::vector<NodePtr> kids{ternary()};
    while (accept(",")) kids.push_back(ternary());
    expect(")");
    const auto wrong = [&](const char* problem) { throw ExprError(problem, text_, name.position); };
    if (name.text == "ceil_div") {
      if (kids.size() != 2) wrong("ceil_div takes two values");
      return make(ExprOp::kCeilDiv, name.position, std::move(kids));
    }
    if (name.text != "min" && name.text != "max") {
      wrong("unknown function; known: min, max, ceil_div");
    }
    if (kids.size() < 2) wrong("min and max take two or more values");
    return make(name.text == "min" ? ExprOp::kMin : ExprOp::kMax, name.position, std::move(kids));
  }

  std::string_view text_;
  std::vector<Token> tokens_;
  size_t next_ = 0;
  int depth_ = 0;
};

}  // namespace

std::shared_ptr<const ExprNode> parse_expr(std::string_view text) { return Parser(text).parse(); }

}  // namespace pack
}  // namespace netcl
