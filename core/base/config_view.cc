// ConfigView: the typed, located reading of a JsonDoc.
#include <cmath>
#include <utility>

#include "core/base/json_doc.h"
#include "core/base/json_parser.h"
#include "core/base/text.h"

namespace netcl {
namespace {

std::string integer_range(int64_t low, int64_t high) {
  if (low == ConfigView::kIntMin && high == ConfigView::kIntMax) return "a whole number";
  if (high == ConfigView::kIntMax) return str_cat("a whole number of at least ", low);
  if (low == ConfigView::kIntMin) return str_cat("a whole number of at most ", high);
  return str_cat("a whole number from ", low, " to ", high);
}

std::string number_range(double low, double high) {
  if (std::isinf(low) && std::isinf(high)) return "a number";
  if (std::isinf(high)) return str_cat("a number of at least ", low);
  if (std::isinf(low)) return str_cat("a number of at most ", high);
  return str_cat("a number from ", low, " to ", high);
}

[[noreturn]] void wrong(const ConfigView& view, const std::string& expected) {
  view.reject("expected " + expected + ", found " + describe_json(view.json()));
}

}  // namespace

ConfigView::ConfigView(std::shared_ptr<const JsonDoc> doc)
    : doc_(std::move(doc)), node_(&doc_->root()) {
  as_object();
}

ConfigView::ConfigView(std::shared_ptr<const JsonDoc> doc, const Json* node, std::string pointer,
                       std::string path)
    : doc_(std::move(doc)), node_(node), pointer_(std::move(pointer)), path_(std::move(path)) {}

std::string ConfigView::where() const { return doc_->where(doc_->location(pointer_)); }

bool ConfigView::from_override() const { return !doc_->location(pointer_).override_text.empty(); }

void ConfigView::reject(const std::string& message) const {
  fail(ErrorCode::kUsage, where(), ": ", path_, path_.empty() ? "" : ": ", message);
}

void ConfigView::reject_key(const std::string& message) const {
  fail(ErrorCode::kUsage, doc_->where(doc_->key_location(pointer_)), ": ", path_,
       path_.empty() ? "" : ": ", message);
}

int64_t ConfigView::as_integer(int64_t low, int64_t high) const {
  const std::string expected = integer_range(low, high);
  int64_t value = 0;
  if (node_->is_number_unsigned()) {
    const uint64_t raw = node_->get<uint64_t>();
    if (raw > static_cast<uint64_t>(kIntMax)) wrong(*this, expected);
    value = static_cast<int64_t>(raw);
  } else if (node_->is_number_integer()) {
    value = node_->get<int64_t>();
  } else if (node_->is_number_float()) {  // 1e3 and 64.0 are whole numbers too
    const double raw = node_->get<double>();
    if (raw != std::floor(raw) || std::fabs(raw) > 9.0e15) wrong(*this, expected);
    value = static_cast<int64_t>(raw);
  } else {
    wrong(*this, expected);
  }
  if (value < low || value > high) wrong(*this, expected);
  return value;
}

double ConfigView::as_number(double low, double high) const {
  if (!node_->is_number()) wrong(*this, number_range(low, high));
  const double value = node_->get<double>();
  if (!(value >= low && value <= high)) wrong(*this, number_range(low, high));
  return value;
}

bool ConfigView::as_bool() const {
  if (!node_->is_boolean()) wrong(*this, "true or false");
  return node_->get<bool>();
}

std::string ConfigView::as_text(const std::vector<std::string>& choices) const {
  if (!node_->is_string()) {
    wrong(*this, choices.empty() ? "text" : "one of \"" + join(choices, "\", \"") + '"');
  }
  const std::string value = node_->get<std::string>();
  if (choices.empty()) return value;
  for (const std::string& choice : choices) {
    if (choice == value) return value;
  }
  const std::string near = nearest_name(value, choices);
  reject(str_cat("expected one of \"", join(choices, "\", \""), "\", found ", describe_json(*node_),
                 near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

const ConfigView& ConfigView::as_list() const {
  if (!node_->is_array()) wrong(*this, "a list");
  return *this;
}

const ConfigView& ConfigView::as_object() const {
  if (!node_->is_object()) wrong(*this, "an object");
  return *this;
}

size_t ConfigView::size() const { return as_list().node_->size(); }

ConfigView ConfigView::operator[](size_t index) const {
  NETCL_CHECK(index < size(), ErrorCode::kInternal, path_, ": element ", index, " of a list of ",
              size());
  return ConfigView(doc_, &(*node_)[index], str_cat(pointer_, '/', index),
                    str_cat(path_, '[', index, ']'));
}

bool ConfigView::has(const std::string& key) const { return as_object().node_->contains(key); }

ConfigView ConfigView::child(const std::string& key, const Json& node) const {
  return ConfigView(doc_, &node, pointer_ + pointer_step(key),
                    path_.empty() ? key : path_ + "." + key);
}

ConfigView ConfigView::at(const std::string& key) const {
  if (has(key)) return child(key, (*node_)[key]);
  const std::string near = nearest_name(key, keys());
  reject(str_cat("the key \"", key, "\" is missing",
                 near.empty() ? "" : "; is it the one spelt \"" + near + "\"?"));
}

std::optional<ConfigView> ConfigView::find(const std::string& key) const {
  if (!has(key)) return std::nullopt;
  return child(key, (*node_)[key]);
}

std::vector<std::string> ConfigView::keys() const {
  std::vector<std::string> names;
  for (const auto& item : as_object().node_->items()) names.push_back(item.key());
  return names;
}

void ConfigView::check_keys(const std::vector<std::string>& known) const {
  for (const std::string& key : keys()) {
    bool found = false;
    for (const std::string& name : known) found = found || name == key;
    if (!found) at(key).reject_key("unknown key" + suggest(key, known));
  }
}

int64_t ConfigView::integer(const std::string& key, int64_t low, int64_t high) const {
  return at(key).as_integer(low, high);
}

int64_t ConfigView::integer_or(const std::string& key, int64_t otherwise, int64_t low,
                               int64_t high) const {
  return has(key) ? integer(key, low, high) : otherwise;
}

double ConfigView::number(const std::string& key, double low, double high) const {
  return at(key).as_number(low, high);
}

double ConfigView::number_or(const std::string& key, double otherwise, double low,
                             double high) const {
  return has(key) ? number(key, low, high) : otherwise;
}

bool ConfigView::boolean(const std::string& key) const { return at(key).as_bool(); }

bool ConfigView::boolean_or(const std::string& key, bool otherwise) const {
  return has(key) ? boolean(key) : otherwise;
}

std::string ConfigView::text(const std::string& key,
                             const std::vector<std::string>& choices) const {
  return at(key).as_text(choices);
}

std::string ConfigView::text_or(const std::string& key, const std::string& otherwise,
                                const std::vector<std::string>& choices) const {
  return has(key) ? text(key, choices) : otherwise;
}

ConfigView ConfigView::list(const std::string& key) const { return at(key).as_list(); }

ConfigView ConfigView::object(const std::string& key) const { return at(key).as_object(); }

}  // namespace netcl
