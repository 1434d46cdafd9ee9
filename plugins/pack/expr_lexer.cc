#include "plugins/pack/expr_lexer.h"

#include "plugins/pack/expr.h"

namespace netcl {
namespace pack {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

Token read_integer(std::string_view text, size_t* at) {
  Token token;
  token.kind = TokenKind::kInteger;
  token.position = *at;
  for (; *at < text.size() && is_digit(text[*at]); ++*at) {
    if (__builtin_mul_overflow(token.integer, int64_t{10}, &token.integer) ||
        __builtin_add_overflow(token.integer, int64_t{text[*at] - '0'}, &token.integer)) {
      throw ExprError("the number does not fit into 64 bits", text, token.position);
    }
  }
  if (*at < text.size() && is_name_start(text[*at])) {
    throw ExprError("a name must not start with a digit", text, token.position);
  }
  return token;
}

Token read_text(std::string_view text, size_t* at) {
  Token token;
  token.kind = TokenKind::kText;
  token.position = *at;
  const size_t end = text.find(text[*at], *at + 1);
  if (end == std::string_view::npos) throw ExprError("the quote is not closed", text, *at);
  token.text = std::string(text.substr(*at + 1, end - *at - 1));
  *at = end + 1;
  return token;
}

Token read_symbol(std::string_view text, size_t* at) {
  Token token;
  token.kind = TokenKind::kSymbol;
  token.position = *at;
  const std::string_view two = text.substr(*at, 2);
  for (const char* symbol : {"&&", "||", "==", "!=", "<=", ">="}) {
    if (two == symbol) {
      token.text = symbol;
      *at += 2;
      return token;
    }
  }
  if (std::string_view("+-*/%<>!?:(),").find(text[*at]) == std::string_view::npos) {
    throw ExprError("unexpected character '" + std::string(1, text[*at]) + "'", text, *at);
  }
  token.text = text[*at];
  ++*at;
  return token;
}

}  // namespace

std::vector<Token> tokenize(std::string_view text) {
  std::vector<Token> tokens;
  size_t at = 0;
  while (true) {
    while (at < text.size() && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n')) ++at;
    if (at == text.size()) break;
    const char c = text[at];
    if (is_digit(c)) {
      tokens.push_back(read_integer(text, &at));
    } else if (c == '\'' || c == '"') {
      tokens.push_back(read_text(text, &at));
    } else if (is_name_start(c)) {
      Token token;
      token.kind = TokenKind::kName;
      token.position = at;
      while (at < text.size() && (is_name_start(text[at]) || is_digit(text[at]))) ++at;
      token.text = std::string(text.substr(token.position, at - token.position));
      tokens.push_back(std::move(token));
    } else {
      tokens.push_back(read_symbol(text, &at));
    }
  }
  Token end;
  end.position = at;
  tokens.push_back(std::move(end));
  return tokens;
}

}  // namespace pack
}  // namespace netcl
