#include "core/base/json_doc.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/base/file.h"
#include "core/base/json_parser.h"
#include "core/base/text.h"

namespace netcl {
namespace {

struct Step {
  std::string key;
  bool index = false;  // written as [n]
};

bool all_digits(const std::string& text) {
  return !text.empty() && text.size() < 10 && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

// Splits "a.b[2].c" into its steps. Errors: kUsage.
std::vector<Step> parse_path(const std::string& path, const std::string& where) {
  std::vector<Step> steps;
  for (const std::string& part : split(path, '.')) {
    const size_t open = part.find('[');
    const std::string name = part.substr(0, open);
    if (!name.empty()) steps.push_back({name, false});
    bool good = !name.empty() && path.back() != '.';
    size_t at = open;
    while (good && at != std::string::npos && at < part.size()) {
      const size_t close = part.find(']', at);
      good = part[at] == '[' && close != std::string::npos;
      if (!good) break;
      steps.push_back({part.substr(at + 1, close - at - 1), true});
      good = all_digits(steps.back().key);
      at = close + 1;
    }
    NETCL_CHECK(good, ErrorCode::kUsage, where, ": cannot read the path \"", path,
                "\"; expected names joined by dots, with [n] for list elements: "
                "optimizer.lr, model.layers[2].out");
  }
  return steps;
}

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& item : object.items()) keys.push_back(item.key());
  return keys;
}

std::string join_path(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

}  // namespace

std::string describe_json(const Json& value) {
  if (value.is_array()) return str_cat("a list of ", value.size());
  if (value.is_object()) return "an object";
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

std::shared_ptr<JsonDoc> JsonDoc::parse(std::string_view text, const std::string& name) {
  auto doc = std::make_shared<JsonDoc>();
  doc->name_ = name;
  JsonParser(text, *doc).run();
  return doc;
}

std::shared_ptr<JsonDoc> JsonDoc::load(const std::filesystem::path& path) {
  return parse(read_file(path, ErrorCode::kUsage), path.string());
}

const JsonDoc::Entry& JsonDoc::entry(const std::string& pointer) const {
  std::string at = pointer;
  while (true) {
    const auto found = entries_.find(at);
    if (found != entries_.end()) return found->second;
    NETCL_CHECK(!at.empty(), ErrorCode::kInternal, name_, ": no location for the document");
    at.resize(at.rfind('/'));
  }
}

const JsonLocation& JsonDoc::location(const std::string& pointer) const {
  return entry(pointer).value;
}

const JsonLocation& JsonDoc::key_location(const std::string& pointer) const {
  return entry(pointer).key;
}

std::string JsonDoc::where(const JsonLocation& location) const {
  if (!location.override_text.empty()) return "--set " + location.override_text;
  return str_cat(name_, ':', location.line, ':', location.column);
}

void JsonDoc::apply_override(const std::string& assignment) {
  const std::string place = "--set " + assignment;
  const size_t equals = assignment.find('=');
  NETCL_CHECK(equals != std::string::npos && equals > 0, ErrorCode::kUsage, place,
              ": expected key=value, such as optimizer.lr=0.01");
  const std::vector<Step> steps = parse_path(assignment.substr(0, equals), place);
  const std::string text = assignment.substr(equals + 1);

  // The whole path is checked on a copy first, so a refused override changes nothing.
  Json changed = root_;
  Json* node = &changed;
  std::string pointer, path, first_made;
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string& key = steps[i].key;
    if (node->is_array()) {
      NETCL_CHECK(all_digits(key), ErrorCode::kUsage, place, ": ", path, " is a list of ",
                  node->size(), "; expected a number from 0, found \"", key, '"');
      const size_t index = std::stoul(key);
      NETCL_CHECK(index < node->size(), ErrorCode::kUsage, place, ": ", path, " has ", node->size(),
                  " elements, [0] to [", node->empty() ? 0 : node->size() - 1, "]; there is no [",
                  index, ']');
      node = &(*node)[index];
      pointer += "/" + key;
      path += "[" + key + "]";
      continue;
    }
    NETCL_CHECK(node->is_object() && !steps[i].index, ErrorCode::kUsage, place, ": ",
                path.empty() ? "the document" : path, " is ", describe_json(*node),
                "; it has no \"", key, '"');
    if (!node->contains(key) && i + 1 < steps.size()) {
      const std::string near = nearest_name(key, keys_of(*node));
      NETCL_CHECK(near.empty() && !steps[i + 1].index, ErrorCode::kUsage, place, ": ",
                  join_path(path, key), ": there is no such key", suggest(key, keys_of(*node)));
      (*node)[key] = Json::object();
      if (first_made.empty()) first_made = pointer + pointer_step(key);
    }
    node = &(*node)[key];
    pointer += pointer_step(key);
    path = join_path(path, key);
  }
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  *node = value.is_discarded() ? Json(text) : std::move(value);
  root_ = std::move(changed);

  const std::string& top = first_made.empty() ? pointer : first_made;
  for (auto it = entries_.begin(); it != entries_.end();) {
    it = it->first.compare(0, pointer.size() + 1, pointer + "/") == 0 ? entries_.erase(it)
                                                                      : std::next(it);
  }
  const JsonLocation location{0, 0, assignment};
  entries_[top] = Entry{location, location};
  entries_[pointer] = Entry{location, location};
}

}  // namespace netcl
