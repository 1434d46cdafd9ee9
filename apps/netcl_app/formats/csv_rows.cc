#include "apps/netcl_app/formats/csv_rows.h"

#include <utility>

#include "core/base/error.h"

namespace netcl::app {

CsvRows::CsvRows(std::string_view text, char delimiter, std::string path)
    : text_(text), delimiter_(delimiter), path_(std::move(path)) {
  if (text_.substr(0, 3) == "\xEF\xBB\xBF") offset_ = 3;
  const std::string_view mark = text_.substr(0, 2);
  NETCL_CHECK(mark != "\xFF\xFE" && mark != "\xFE\xFF", ErrorCode::kData, path_,
              ": the file is UTF-16 text; save it as UTF-8");
}

bool CsvRows::at_line_end() const {
  return offset_ >= text_.size() || peek() == '\n' || peek() == '\r';
}

void CsvRows::skip_blanks() {
  while (offset_ < text_.size() && (peek() == ' ' || peek() == '\t') && peek() != delimiter_) {
    ++offset_;
  }
}

void CsvRows::read_quoted(std::string& field, size_t column) {
  const int64_t start = line_;
  ++offset_;
  while (true) {
    NETCL_CHECK(offset_ < text_.size(), ErrorCode::kData, path_, ':', start, ": column ", column,
                ": the quote that opens here is never closed");
    const char c = text_[offset_++];
    if (c == '\n') ++line_;
    if (c != '"') {
      field += c;
    } else if (peek() == '"' && offset_ < text_.size()) {
      field += '"';
      ++offset_;
    } else {
      break;
    }
  }
  skip_blanks();
  NETCL_CHECK(at_line_end() || peek() == delimiter_, ErrorCode::kData, path_, ':', line_,
              ": column ", column, ": text after the closing quote; expected '", delimiter_,
              "' or the end of the line (a quote inside quotes is written twice)");
}

void CsvRows::read_plain(std::string& field) {
  const size_t begin = offset_;
  while (!at_line_end() && peek() != delimiter_) ++offset_;
  size_t end = offset_;
  while (end > begin && (text_[end - 1] == ' ' || text_[end - 1] == '\t')) --end;
  field.append(text_.substr(begin, end - begin));
}

bool CsvRows::next(CsvRow& row) {
  while (offset_ < text_.size()) {
    row.line = line_;
    size_t count = 0;
    while (true) {
      if (row.fields.size() <= count) row.fields.emplace_back();
      std::string& field = row.fields[count++];
      field.clear();
      skip_blanks();
      if (peek() == '"') {
        read_quoted(field, count);
      } else {
        read_plain(field);
      }
      if (at_line_end()) break;
      ++offset_;  // the delimiter
    }
    row.fields.resize(count);
    if (peek() == '\r') ++offset_;
    if (peek() == '\n') ++offset_;
    ++line_;
    if (count > 1 || !row.fields[0].empty()) return true;
  }
  return false;
}

}  // namespace netcl::app
