#include "core/base/json_parser.h"

#include <cctype>
#include <utility>

namespace netcl {
namespace {

constexpr int kMaxDepth = 200;  // far above any configuration, far below the stack's end

bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

}  // namespace

std::string pointer_step(const std::string& key) {
  std::string step = "/";
  for (char c : key) {
    if (c == '~')
      step += "~0";
    else if (c == '/')
      step += "~1";
    else
      step += c;
  }
  return step;
}

void JsonParser::run() {
  if (text_.substr(0, 3) == "\xEF\xBB\xBF") offset_ = 3;
  skip_space();
  if (at_end()) error(here(), "the file is empty; expected a JSON value");
  doc_.root_ = parse_value("", nullptr, 0);
  skip_space();
  if (!at_end()) error(here(), "expected the end of the file after the value, found " + found());
}

void JsonParser::advance() {
  if (text_[offset_] == '\n') {
    ++line_;
    column_ = 1;
  } else {
    ++column_;
  }
  ++offset_;
}

std::string JsonParser::found() const {
  if (at_end()) return "the end of the file";
  const char c = peek();
  if (is_word_char(c)) {
    size_t end = offset_;
    while (end < text_.size() && end - offset_ < 24 && is_word_char(text_[end])) ++end;
    return str_cat('"', text_.substr(offset_, end - offset_), '"');
  }
  if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) {
    return str_cat("byte ", static_cast<int>(static_cast<unsigned char>(c)));
  }
  return str_cat('\'', c, '\'');
}

void JsonParser::error(const JsonLocation& place, const std::string& message) const {
  fail(ErrorCode::kUsage, doc_.where(place), ": ", message);
}

void JsonParser::skip_block_comment() {
  const JsonLocation start = here();
  advance();
  advance();
  while (!at_end()) {
    if (peek() == '*' && offset_ + 1 < text_.size() && text_[offset_ + 1] == '/') {
      advance();
      advance();
      return;
    }
    advance();
  }
  error(start, "the comment that starts here with /* is never closed with */");
}

void JsonParser::skip_space() {
  while (!at_end()) {
    const char c = peek();
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      advance();
    } else if (c == '/' && offset_ + 1 < text_.size() && text_[offset_ + 1] == '/') {
      while (!at_end() && peek() != '\n') advance();
    } else if (c == '/' && offset_ + 1 < text_.size() && text_[offset_ + 1] == '*') {
      skip_block_comment();
    } else {
      return;
    }
  }
}

Json JsonParser::parse_value(const std::string& pointer, const JsonLocation* key, int depth) {
  const JsonLocation place = here();
  if (depth > kMaxDepth) error(place, str_cat("nested deeper than ", kMaxDepth, " levels"));
  doc_.entries_[pointer] = JsonDoc::Entry{key ? *key : place, place};
  const char c = peek();
  if (c == '{') return parse_object(pointer, depth);
  if (c == '[') return parse_list(pointer, depth);
  if (c == '"') return parse_string();
  if (c == '-' || std::isdigit(static_cast<unsigned char>(c))) return parse_number();
  if (is_word_char(c)) return parse_word();
  error(place, "expected a value, found " + found());
}

Json JsonParser::parse_object(const std::string& pointer, int depth) {
  const JsonLocation open = here();
  Json object = Json::object();
  advance();
  skip_space();
  if (peek() == '}' && !at_end()) {
    advance();
    return object;
  }
  while (true) {
    const JsonLocation place = here();
    if (peek() != '"') {
      const bool trailing = !object.empty() && peek() == '}';
      error(place, trailing ? "expected a key after the comma, found '}' (remove the comma)"
                            : "expected a key in double quotes, found " + found());
    }
    const std::string key = parse_string().get<std::string>();
    const std::string at = pointer + pointer_step(key);
    if (object.contains(key)) {
      error(place, str_cat("duplicate key \"", key, "\", first given on line ",
                           doc_.entries_.at(at).key.line, "; remove one of the two"));
    }
    skip_space();
    if (peek() != ':') error(here(), str_cat("expected ':' after \"", key, "\", found ", found()));
    advance();
    skip_space();
    Json value = parse_value(at, &place, depth + 1);
    object[key] = std::move(value);
    skip_space();
    if (at_end()) {
      error(here(),
            str_cat("the object that starts on line ", open.line, " is never closed with '}'"));
    }
    if (peek() == '}') break;
    if (peek() != ',') error(here(), "expected ',' or '}', found " + found());
    advance();
    skip_space();
  }
  advance();
  return object;
}

Json JsonParser::parse_list(const std::string& pointer, int depth) {
  const JsonLocation open = here();
  Json list = Json::array();
  advance();
  skip_space();
  if (peek() == ']' && !at_end()) {
    advance();
    return list;
  }
  while (true) {
    if (!list.empty() && peek() == ']') {
      error(here(), "expected a value after the comma, found ']' (remove the comma)");
    }
    list.push_back(parse_value(str_cat(pointer, '/', list.size()), nullptr, depth + 1));
    skip_space();
    if (at_end()) {
      error(here(),
            str_cat("the list that starts on line ", open.line, " is never closed with ']'"));
    }
    if (peek() == ']') break;
    if (peek() != ',') error(here(), "expected ',' or ']', found " + found());
    advance();
    skip_space();
  }
  advance();
  return list;
}

Json JsonParser::parse_string() {
  const JsonLocation start = here();
  const size_t begin = offset_;
  advance();
  while (!at_end() && peek() != '"') {
    if (peek() == '\n') break;
    if (peek() == '\\') advance();
    if (!at_end()) advance();
  }
  if (at_end() || peek() != '"') error(start, "the text that starts here has no closing '\"'");
  advance();
  const std::string_view slice = text_.substr(begin, offset_ - begin);
  Json value = Json::parse(slice, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) {
    error(start,
          str_cat("text with a bad escape, a control character or bytes that are not UTF-8: ",
                  slice.substr(0, 40)));
  }
  return value;
}

Json JsonParser::parse_number() {
  const JsonLocation start = here();
  const size_t begin = offset_;
  while (!at_end() && (is_word_char(peek()) || peek() == '+' || peek() == '-' || peek() == '.')) {
    advance();
  }
  const std::string_view slice = text_.substr(begin, offset_ - begin);
  Json value;
  try {
    value = Json::parse(slice);
  } catch (const Json::out_of_range&) {
    error(start, str_cat("the number ", slice, " is too large"));
  } catch (const Json::parse_error&) {
    error(start, str_cat("expected a number, found ", slice));
  }
  return value;
}

Json JsonParser::parse_word() {
  const JsonLocation start = here();
  const size_t begin = offset_;
  while (!at_end() && is_word_char(peek())) advance();
  const std::string_view word = text_.substr(begin, offset_ - begin);
  if (word == "true") return true;
  if (word == "false") return false;
  if (word == "null") return nullptr;
  error(start, str_cat("expected a value, found ", word, " (text needs double quotes)"));
}

}  // namespace netcl
