// The parser behind JsonDoc::parse: recursive descent over the text, so that every key and value
// has a place. Strings and numbers are decoded by nlohmann-json from their slice of the text.
#ifndef NETCL_CORE_BASE_JSON_PARSER_H_
#define NETCL_CORE_BASE_JSON_PARSER_H_

#include <string>
#include <string_view>

#include "core/base/json_doc.h"

namespace netcl {

class JsonParser {
 public:
  JsonParser(std::string_view text, JsonDoc& doc) : text_(text), doc_(doc) {}

  // Fills the document. Errors: kUsage.
  void run();

 private:
  Json parse_value(const std::string& pointer, const JsonLocation* key, int depth);
  Json parse_object(const std::string& pointer, int depth);
  Json parse_list(const std::string& pointer, int depth);
  Json parse_string();
  Json parse_number();
  Json parse_word();
  void skip_space();
  void skip_block_comment();
  bool at_end() const { return offset_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[offset_]; }
  void advance();
  JsonLocation here() const { return JsonLocation{line_, column_, {}}; }
  std::string found() const;  // what stands at the cursor, for messages
  [[noreturn]] void error(const JsonLocation& place, const std::string& message) const;

  std::string_view text_;
  JsonDoc& doc_;
  size_t offset_ = 0;
  int line_ = 1;
  int column_ = 1;
};

// One step of a JSON pointer: "/" and the key with '~' and '/' escaped.
std::string pointer_step(const std::string& key);

}  // namespace netcl

#endif  // NETCL_CORE_BASE_JSON_PARSER_H_
