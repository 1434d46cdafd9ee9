// JSON with comments that remembers where everything stood, and a cursor that reads it.
//
// JsonDoc owns the values and the line:column of every key and value; a --set override replaces a
// value and its location. ConfigView is a cursor into a document: cheap to copy, keeps the document
// alive, and every error it throws names the place, the key's path, what was expected and what was
// found. Threads: a document may be read by many once nobody overrides it any more.
#ifndef NETCL_CORE_BASE_JSON_DOC_H_
#define NETCL_CORE_BASE_JSON_DOC_H_

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace netcl {

using Json = nlohmann::ordered_json;

// Where a key or value stood: line and column count from 1 (columns in bytes); `override_text` is
// set instead for a value that came from --set.
struct JsonLocation {
  int line = 0;
  int column = 0;
  std::string override_text;
};

class JsonDoc {
 public:
  // Parses JSON that may hold // and /* */ comments. `name` stands for the file in messages.
  // Errors: kUsage with name:line:column; a duplicate key names both places.
  static std::shared_ptr<JsonDoc> parse(std::string_view text, const std::string& name);
  // Errors: kUsage, also when the file cannot be read.
  static std::shared_ptr<JsonDoc> load(const std::filesystem::path& path);

  const Json& root() const { return root_; }
  const std::string& name() const { return name_; }

  // Location of the value at a JSON pointer ("/model/layers/2"), or of its nearest ancestor.
  const JsonLocation& location(const std::string& pointer) const;
  // Location of the key that names the value; for list elements that of the value.
  const JsonLocation& key_location(const std::string& pointer) const;
  // "config.json:12:7", or "--set optimizer.lr=1".
  std::string where(const JsonLocation& location) const;

  // Sets one value from "path=value": the path as ConfigView prints it (`a.b[2].c`, `a.b.2.c`
  // works too), the value parsed as JSON, else taken as text. Missing objects on the way are made,
  // unless their name looks like a misspelt neighbour. Views made before become invalid.
  // Errors: kUsage, naming --set and the nearest key.
  void apply_override(const std::string& assignment);

 private:
  struct Entry {
    JsonLocation key;
    JsonLocation value;
  };
  friend class JsonParser;
  const Entry& entry(const std::string& pointer) const;

  std::string name_;
  Json root_;
  std::map<std::string, Entry> entries_;  // by JSON pointer; "" is the root
};

inline void apply_override(JsonDoc& doc, const std::string& assignment) {
  doc.apply_override(assignment);
}

class ConfigView {
 public:
  static constexpr int64_t kIntMin = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kIntMax = std::numeric_limits<int64_t>::max();
  static constexpr double kInf = std::numeric_limits<double>::infinity();

  // The root of a document. Errors: kUsage unless it is an object.
  explicit ConfigView(std::shared_ptr<const JsonDoc> doc);

  const Json& json() const { return *node_; }
  const std::string& path() const { return path_; }  // "model.layers[2].out"; "" for the root
  const std::shared_ptr<const JsonDoc>& doc() const { return doc_; }
  std::string where() const;   // place of the value
  bool from_override() const;  // the value came from --set
  bool is_list() const { return node_->is_array(); }
  bool is_object() const { return node_->is_object(); }
  bool is_text() const { return node_->is_string(); }
  bool is_integer() const { return node_->is_number_integer(); }

  // Throws kUsage "place: path: message". `reject_key` points at the key instead of the value.
  [[noreturn]] void reject(const std::string& message) const;
  [[noreturn]] void reject_key(const std::string& message) const;

  // This value as a type; bounds are inclusive, `choices` empty means any text.
  // Errors: kUsage with what was expected and found.
  int64_t as_integer(int64_t low = kIntMin, int64_t high = kIntMax) const;
  double as_number(double low = -kInf, double high = kInf) const;
  bool as_bool() const;
  std::string as_text(const std::vector<std::string>& choices = {}) const;
  const ConfigView& as_list() const;
  const ConfigView& as_object() const;

  // Elements of a list. Errors: kUsage if this is no list, kInternal for an index past its end.
  size_t size() const;
  ConfigView operator[](size_t index) const;

  // Members of an object. `at` requires the key: Errors: kUsage, naming the nearest key there is.
  bool has(const std::string& key) const;
  ConfigView at(const std::string& key) const;
  std::optional<ConfigView> find(const std::string& key) const;
  std::vector<std::string> keys() const;
  // Errors: kUsage for the first key that is not in `known`, with the nearest known one.
  void check_keys(const std::vector<std::string>& known) const;

  // A required member, or an optional one with its default.
  int64_t integer(const std::string& key, int64_t low = kIntMin, int64_t high = kIntMax) const;
  int64_t integer_or(const std::string& key, int64_t otherwise, int64_t low = kIntMin,
                     int64_t high = kIntMax) const;
  double number(const std::string& key, double low = -kInf, double high = kInf) const;
  double number_or(const std::string& key, double otherwise, double low = -kInf,
                   double high = kInf) const;
  bool boolean(const std::string& key) const;
  bool boolean_or(const std::string& key, bool otherwise) const;
  std::string text(const std::string& key, const std::vector<std::string>& choices = {}) const;
  std::string text_or(const std::string& key, const std::string& otherwise,
                      const std::vector<std::string>& choices = {}) const;
  ConfigView list(const std::string& key) const;
  ConfigView object(const std::string& key) const;

 private:
  ConfigView(std::shared_ptr<const JsonDoc> doc, const Json* node, std::string pointer,
             std::string path);
  ConfigView child(const std::string& key, const Json& node) const;

  std::shared_ptr<const JsonDoc> doc_;
  const Json* node_;
  std::string pointer_;
  std::string path_;
};

// How a value reads in an error message: `"ten"`, `12`, `a list of 3`, `an object`.
std::string describe_json(const Json& value);

}  // namespace netcl

#endif  // NETCL_CORE_BASE_JSON_DOC_H_
