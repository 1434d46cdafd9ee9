// Splits an expression into tokens.
#ifndef NETCL_PLUGINS_PACK_EXPR_LEXER_H_
#define NETCL_PLUGINS_PACK_EXPR_LEXER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace netcl {
namespace pack {

enum class TokenKind { kInteger, kText, kName, kSymbol, kEnd };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  size_t position = 0;
  int64_t integer = 0;
  std::string text;  // name, symbol, or the text between quotes
};

// The last token is kEnd. Errors: ExprError.
std::vector<Token> tokenize(std::string_view text);

}  // namespace pack
}  // namespace netcl

#endif  // NETCL_PLUGINS_PACK_EXPR_LEXER_H_
