// Splits the text of a table into rows of fields (RFC 4180, with any delimiter and line end).
#ifndef NETCL_APPS_NETCL_APP_FORMATS_CSV_ROWS_H_
#define NETCL_APPS_NETCL_APP_FORMATS_CSV_ROWS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace netcl::app {

struct CsvRow {
  int64_t line = 0;                 // where it starts, from 1
  std::vector<std::string> fields;  // unquoted; blanks around unquoted fields are dropped
};

// Reads row by row; `text` outlives it.
class CsvRows {
 public:
  // Skips a byte-order mark. Errors: kData for UTF-16.
  CsvRows(std::string_view text, char delimiter, std::string path);

  // Reads the next row that is not blank; false at the end. Reuses the row's memory.
  // Errors: kData for a quote that is never closed or text after a closing quote.
  bool next(CsvRow& row);

 private:
  void read_quoted(std::string& field, size_t column);
  void read_plain(std::string& field);
  void skip_blanks();
  bool at_line_end() const;
  char peek() const { return offset_ < text_.size() ? text_[offset_] : '\0'; }

  std::string_view text_;
  char delimiter_;
  std::string path_;
  size_t offset_ = 0;
  int64_t line_ = 1;
};

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_FORMATS_CSV_ROWS_H_
