#include "plugins/pack/template.h"

#include <cctype>

namespace netcl {
namespace pack {
namespace {

bool is_name_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

Template Template::parse(std::string_view text) {
  Template out;
  std::string literal;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '$') {
      literal += text[at++];
      continue;
    }
    if (text.substr(at, 2) == "$$") {
      literal += '$';
      at += 2;
      continue;
    }
    size_t begin = at + 1, end = begin, next = begin;
    if (begin < text.size() && text[begin] == '{') {
      ++begin;
      end = text.find('}', begin);
      if (end == std::string_view::npos) throw ExprError("the brace is not closed", text, at);
      next = end + 1;
    } else {
      while (end < text.size() && is_name_char(text[end])) ++end;
      if (end == begin) throw ExprError("expected a name or '{' after '$'", text, at);
      next = end;
    }
    if (!literal.empty()) out.pieces_.emplace_back(std::move(literal));
    literal.clear();
    out.pieces_.emplace_back(Expr::parse(text.substr(begin, end - begin)));
    at = next;
  }
  if (!literal.empty()) out.pieces_.emplace_back(std::move(literal));
  return out;
}

std::string Template::fill(const Scope& scope) const {
  std::string out;
  for (const auto& piece : pieces_) {
    if (const auto* text = std::get_if<std::string>(&piece)) {
      out += *text;
      continue;
    }
    const ExprValue value = std::get<Expr>(piece).evaluate(scope);
    const auto* integer = std::get_if<int64_t>(&value);
    out += integer != nullptr ? std::to_string(*integer) : std::get<std::string>(value);
  }
  return out;
}

}  // namespace pack
}  // namespace netcl
