// Text as tokens: characters (code points of UTF-8) or bytes. Threads: any.
#ifndef NETCL_APPS_NETCL_APP_FORMATS_TEXT_H_
#define NETCL_APPS_NETCL_APP_FORMATS_TEXT_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/dataset.h"

namespace netcl::app {

// The characters of a text. Errors: kData with line and column for what is no UTF-8.
std::vector<uint32_t> characters_of(std::string_view text, const std::string& path);
std::string utf8_of(uint32_t character);

// Which characters there are, and their numbers: in the order of their code points. Without names
// a token is a byte.
class Vocabulary {
 public:
  Vocabulary() = default;  // the 256 bytes
  // One UTF-8 character each, as a data set's class names hold them. Errors: kData for another.
  explicit Vocabulary(const std::vector<std::string>& names, const std::string& path);
  static Vocabulary of(const std::vector<uint32_t>& characters);

  int64_t size() const { return bytes() ? 256 : static_cast<int64_t>(names_.size()); }
  bool bytes() const { return names_.empty(); }
  const std::vector<std::string>& names() const { return names_; }

  // Errors: kData, naming a character that is not in it and where it stands.
  std::vector<int32_t> tokens_of(std::string_view text, const std::string& path) const;
  // The text of one token.
  std::string text_of(int32_t token) const;

 private:
  std::vector<std::string> names_;
  std::map<uint32_t, int32_t> tokens_;
};

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_FORMATS_TEXT_H_
