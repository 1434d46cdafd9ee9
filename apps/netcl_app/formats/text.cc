#include "apps/netcl_app/formats/text.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"

namespace netcl::app {
namespace {

// "kjv.txt:12:7" for the byte at `offset`; columns count bytes from 1.
std::string place(std::string_view text, size_t offset, const std::string& path) {
  const std::string_view before = text.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return str_cat(path, ':', line, ':', offset - start + 1);
}

// Reads one character at `at` and steps behind it; false for broken UTF-8 (overlong forms,
// surrogates and numbers above U+10FFFF too).
bool next_character(std::string_view text, size_t& at, uint32_t& out) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(at);
  if (first < 0x80) {
    out = first;
    ++at;
    return true;
  }
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() - at < length) return false;
  out = first & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return false;
    out = out << 6 | (byte(at + i) & 0x3fu);
  }
  at += length;
  const bool overlong = (length == 3 && out < 0x800) || (length == 4 && out < 0x10000);
  return !overlong && (out < 0xd800 || out > 0xdfff) && out <= 0x10ffff;
}

}  // namespace

std::vector<uint32_t> characters_of(std::string_view text, const std::string& path) {
  std::vector<uint32_t> out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    uint32_t character = 0;
    NETCL_CHECK(next_character(text, at, character), ErrorCode::kData, place(text, start, path),
                ": this is no UTF-8 text; convert it, or set data.unit to \"byte\"");
    out.push_back(character);
  }
  return out;
}

std::string utf8_of(uint32_t c) {
  const auto byte = [](uint32_t bits) { return static_cast<char>(static_cast<uint8_t>(bits)); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xc0 | c >> 6), byte(0x80 | (c & 63))};
  if (c < 0x10000) return {byte(0xe0 | c >> 12), byte(0x80 | (c >> 6 & 63)), byte(0x80 | (c & 63))};
  return {byte(0xf0 | c >> 18), byte(0x80 | (c >> 12 & 63)), byte(0x80 | (c >> 6 & 63)),
          byte(0x80 | (c & 63))};
}

Vocabulary::Vocabulary(const std::vector<std::string>& names, const std::string& path)
    : names_(names) {
  for (size_t i = 0; i < names.size(); ++i) {
    const std::vector<uint32_t> character = characters_of(names[i], path);
    NETCL_CHECK(character.size() == 1, ErrorCode::kData, path, ": entry ", i,
                " of the vocabulary is \"", names[i], "\"; expected one character");
    tokens_[character[0]] = static_cast<int32_t>(i);
  }
}

Vocabulary Vocabulary::of(const std::vector<uint32_t>& characters) {
  Vocabulary out;
  for (const uint32_t c : std::set<uint32_t>(characters.begin(), characters.end())) {
    out.tokens_[c] = static_cast<int32_t>(out.names_.size());
    out.names_.push_back(utf8_of(c));
  }
  return out;
}

std::vector<int32_t> Vocabulary::tokens_of(std::string_view text, const std::string& path) const {
  std::vector<int32_t> out;
  out.reserve(text.size());
  if (bytes()) {
    for (const char c : text) out.push_back(static_cast<uint8_t>(c));
    return out;
  }
  size_t offset = 0;
  for (const uint32_t c : characters_of(text, path)) {
    const auto found = tokens_.find(c);
    NETCL_CHECK(found != tokens_.end(), ErrorCode::kData, place(text, offset, path),
                ": the character \"", utf8_of(c), "\" is not among the ", size(),
                " of the vocabulary that the model was trained with");
    out.push_back(found->second);
    offset += utf8_of(c).size();
  }
  return out;
}

std::string Vocabulary::text_of(int32_t token) const {
  if (bytes()) return {static_cast<char>(static_cast<uint8_t>(token))};
  return names_.at(static_cast<size_t>(token));
}

}  // namespace netcl::app
