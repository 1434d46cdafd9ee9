#include "core/runtime/tuned_record.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/runtime/tuned_fit.h"

namespace netcl {

using Json = nlohmann::ordered_json;

namespace {

constexpr size_t kMaxLine = 64 * 1024, kMaxText = 4096, kMaxList = 64;
constexpr int kMaxDepth = 6;
// A nanosecond, and a quarter of an hour: nobody measured less or more for one op.
constexpr double kMinMicroseconds = 1e-3, kMaxMicroseconds = 1e9;

// Why a line is no record.
struct Damage {
  std::string why;
};

template <typename... Parts>
[[noreturn]] void damaged(const Parts&... parts) {
  throw Damage{str_cat(parts...)};
}

// The parser recurses over nothing, but documents are taken apart recursively.
void check_depth(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '{' || c == '[')) {
      if (++depth > kMaxDepth) damaged("nested more than ", kMaxDepth, " deep");
    } else if (!quoted && (c == '}' || c == ']')) {
      --depth;
    }
  }
}

// Of a key that is given twice the parser would keep the last.
struct KeyCheck {
  std::vector<std::set<std::string>> open;  // keys of the objects that are open

  bool operator()(int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key) {
      const std::string key = parsed.get<std::string>();
      if (!open.back().insert(key).second) damaged("\"", key, "\" is given twice");
    }
    return true;
  }
};

Json parse(std::string_view text) {
  if (text.size() > kMaxLine) damaged(text.size(), " bytes; a record has at most ", kMaxLine);
  check_depth(text);
  Json out = Json::parse(text, KeyCheck(), /*allow_exceptions=*/false);
  if (out.is_discarded()) damaged("not JSON");
  if (!out.is_object()) damaged("expected an object, found ", out.type_name());
  return out;
}

const Json& member(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) damaged("\"", key, "\" is missing");
  return *found;
}

const Json& object(const Json& json, const char* key) {
  const Json& out = member(json, key);
  if (!out.is_object()) damaged("\"", key, "\" must be an object");
  return out;
}

std::string text(const Json& value, const char* key, bool may_be_empty = false) {
  if (!value.is_string()) damaged("\"", key, "\" must be text");
  std::string out = value.get<std::string>();
  if ((out.empty() && !may_be_empty) || out.size() > kMaxText)
    damaged("\"", key, "\" has ", out.size(), " characters");
  return out;
}

std::string text_of(const Json& json, const char* key, bool may_be_empty = false) {
  return text(member(json, key), key, may_be_empty);
}

const Json& list(const Json& value, const char* key) {
  if (!value.is_array() || value.size() > kMaxList)
    damaged("\"", key, "\" must be a list of at most ", kMaxList);
  return value;
}

int64_t count(const Json& value, const char* key, int64_t most) {
  if (!value.is_number_integer() || value < 0 || value > most)
    damaged("\"", key, "\" must be an integer from 0 to ", most);
  return value.get<int64_t>();
}

int64_t count_or_0(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() ? 0 : count(*found, key, int64_t{1} << 62);
}

double microseconds(const Json& json, const char* key) {
  const Json& value = member(json, key);
  if (!value.is_number()) damaged("\"", key, "\" must be a number");
  const double out = value.get<double>();
  if (!(out >= kMinMicroseconds && out <= kMaxMicroseconds))
    damaged("\"", key, "\" is ", value.dump(), "; no time that was measured");
  return out;
}

// Numbers without a fraction are integers, whichever way they were written.
nlohmann::json plain(const Json& value, const std::string& key) {
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::abs(number) < 1e15 && number == std::floor(number))
      return static_cast<int64_t>(number);
    return number;
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_string()) return text(value, key.c_str(), /*may_be_empty=*/true);
  if (!value.is_array()) damaged("\"attributes\": \"", key, "\" must be a number, text or list");
  nlohmann::json out = nlohmann::json::array();
  for (const Json& item : list(value, key.c_str())) {
    if (!item.is_number_integer()) damaged("\"attributes\": \"", key, "\" must hold integers");
    out.push_back(item.get<int64_t>());
  }
  return out;
}

std::string attributes_of(const Json& json) {
  nlohmann::json out = nlohmann::json::object();
  if (json.contains("attributes")) {
    const Json& all = object(json, "attributes");
    if (all.size() > kMaxList) damaged("\"attributes\" has ", all.size(), " members");
    for (const auto& item : all.items()) out[item.key()] = plain(item.value(), item.key());
  }
  return out.dump();
}

TensorDesc desc_of(const Json& dtype, const Json& dims) {
  TensorDesc out;
  try {
    out.dtype = dtype_named(text(dtype, "dtypes"));
  } catch (const Error& e) {
    damaged("\"dtypes\": ", e.message());
  }
  std::vector<int64_t> sizes;
  int64_t elements = 1;
  if (list(dims, "shapes").size() > NETCL_MAX_RANK)
    damaged("\"shapes\": more than ", NETCL_MAX_RANK, " dimensions");
  for (const Json& dim : dims) {
    sizes.push_back(count(dim, "shapes", kMaxTunedElements));
    if (sizes.back() > 0 && elements > kMaxTunedElements / sizes.back())
      damaged("\"shapes\": more than ", kMaxTunedElements, " elements");
    elements *= std::max<int64_t>(sizes.back(), 1);
  }
  out.shape = Shape(std::move(sizes));
  return out;
}

TunedQuestion read_question(const Json& json) {
  TunedQuestion out;
  out.op = text_of(json, "op");
  const Json& dtypes = list(member(json, "dtypes"), "dtypes");
  const Json& shapes = list(member(json, "shapes"), "shapes");
  if (dtypes.size() != shapes.size())
    damaged(dtypes.size(), " \"dtypes\" for ", shapes.size(), " \"shapes\"");
  for (size_t i = 0; i < shapes.size(); ++i) out.in.push_back(desc_of(dtypes[i], shapes[i]));
  out.attributes = attributes_of(json);
  return out;
}

TunedDevice read_device(const Json& json) {
  TunedDevice out;
  out.vendor = text_of(json, "vendor");
  out.arch = text_of(json, "arch", /*may_be_empty=*/true);
  out.name = text_of(json, "name");
  out.compute_units = count(member(json, "compute_units"), "compute_units", 1 << 30);
  if (json.contains("type")) out.type = text_of(json, "type", /*may_be_empty=*/true);
  out.max_work_group = count_or_0(json, "max_work_group");
  out.local_mem_bytes = count_or_0(json, "local_mem_bytes");
  out.max_alloc_bytes = count_or_0(json, "max_alloc_bytes");
  out.vector_width_float = count_or_0(json, "vector_width_float");
  return out;
}

TunedRecord read_record(const Json& json) {
  TunedRecord out;
  out.question = read_question(json);
  out.numerics = text_of(json, "numerics");
  out.device = read_device(object(json, "device"));
  const std::string problem = question_problem(out.question, out.device.max_alloc_bytes);
  if (!problem.empty()) damaged(problem);
  const Json& software = object(json, "software");
  out.software = {text_of(software, "platform", true), text_of(software, "opencl", true),
                  text_of(software, "driver", true)};
  const Json& plugin = object(json, "plugin");
  out.plugin = text_of(plugin, "id");
  out.content = text_of(plugin, "content");
  out.variant = text_of(json, "variant");
  out.median_us = microseconds(json, "median_us");
  const Json& spread = member(json, "spread");
  if (!spread.is_number() || !(spread.get<double>() >= 0 && spread.get<double>() <= 1e6))
    damaged("\"spread\" must be a number from 0 on");
  out.spread = spread.get<double>();
  const Json& usual = object(json, "default");
  out.default_plugin = text_of(usual, "plugin");
  out.default_variant = text_of(usual, "variant");
  out.default_us = microseconds(usual, "median_us");
  for (const Json& id : list(member(json, "kernel_sets"), "kernel_sets"))
    out.kernel_sets.push_back(text(id, "kernel_sets"));
  out.check = text_of(json, "check");
  out.date = text_of(json, "date", true);
  return out;
}

Json write_question(const TunedQuestion& question) {
  Json out = {{"op", question.op}, {"dtypes", Json::array()}, {"shapes", Json::array()}};
  for (const TensorDesc& desc : question.in) {
    out["dtypes"].push_back(dtype_name(desc.dtype));
    out["shapes"].push_back(desc.shape.dims());
  }
  out["attributes"] = Json::parse(question.attributes);
  return out;
}

struct AttrJson {
  nlohmann::json operator()(double number) const {
    if (!std::isfinite(number)) return str_cat(number);
    return plain(Json(number), "");
  }
  nlohmann::json operator()(const Shape& shape) const { return shape.dims(); }
  template <typename T>
  nlohmann::json operator()(const T& value) const {
    return value;
  }
};

}  // namespace

bool TunedDevice::same_model(const TunedDevice& o) const {
  return vendor == o.vendor && arch == o.arch && name == o.name && compute_units == o.compute_units;
}

bool TunedDevice::same_arch(const TunedDevice& o) const {
  return vendor == o.vendor && arch == o.arch && !arch.empty();
}

TunedDevice tuned_device(const DeviceInfo& info) {
  return {info.vendor,
          info.arch,
          info.name,
          info.compute_units,
          info.type,
          info.max_work_group,
          info.local_mem_bytes,
          info.max_alloc_bytes,
          info.vector_width_float};
}

std::string TunedSoftware::str() const { return platform + ", " + opencl + ", driver " + driver; }

TunedSoftware tuned_software(const DeviceInfo& info) {
  return {info.platform, info.opencl, info.driver};
}

bool TunedQuestion::same_kind(const TunedQuestion& o) const {
  return op == o.op && attributes == o.attributes && in.size() == o.in.size() &&
         std::equal(in.begin(), in.end(), o.in.begin(),
                    [](const TensorDesc& a, const TensorDesc& b) { return a.dtype == b.dtype; });
}

bool TunedQuestion::same_shapes(const TunedQuestion& o) const {
  return in.size() == o.in.size() &&
         std::equal(in.begin(), in.end(), o.in.begin(),
                    [](const TensorDesc& a, const TensorDesc& b) { return a.shape == b.shape; });
}

std::string TunedQuestion::shapes() const {
  std::vector<std::string> all;
  for (const TensorDesc& desc : in) {
    std::vector<std::string> dims;
    for (const int64_t dim : desc.shape.dims()) dims.push_back(std::to_string(dim));
    all.push_back(dims.empty() ? "scalar" : join(dims, "x"));
  }
  return join(all, " ");
}

std::string TunedQuestion::text() const {
  std::string out = op + '|';
  for (const TensorDesc& desc : in) out += desc.str();
  return out + '|' + attributes;
}

TunedQuestion tuned_question(const std::string& op, const std::vector<TensorDesc>& in,
                             const Attrs& attrs) {
  nlohmann::json attributes = nlohmann::json::object();
  for (const auto& [key, item] : attrs.items()) attributes[key] = std::visit(AttrJson(), item);
  return {op, in, attributes.dump()};
}

TunedQuestion tuned_question(const KernelQuestion& question) {
  return tuned_question(question.op.name, question.in, question.attrs);
}

Attrs attrs_of(const TunedQuestion& question) {
  Attrs out;
  const Json json = Json::parse(question.attributes, nullptr, /*allow_exceptions=*/false);
  NETCL_CHECK(json.is_object(), ErrorCode::kUsage, "attributes ", question.attributes,
              ": expected an object");
  for (const auto& item : json.items()) {
    const Json& value = item.value();
    if (value.is_number_integer()) {
      out.set(item.key(), value.get<int64_t>());
    } else if (value.is_number()) {
      out.set(item.key(), value.get<double>());
    } else if (value.is_array()) {
      out.set(item.key(), value.get<std::vector<int64_t>>());
    } else {
      NETCL_CHECK(value.is_string(), ErrorCode::kUsage, "attribute ", item.key(),
                  " must be a number, text or list");
      out.set(item.key(), value.get<std::string>());
    }
  }
  return out;
}

TunedLine read_tuned_line(std::string_view line) {
  try {
    return {read_record(parse(line)), ""};
  } catch (const Damage& d) {
    return {std::nullopt, d.why};
  } catch (const std::exception& e) {
    return {std::nullopt, e.what()};
  }
}

std::string tuned_line(const TunedRecord& r) {
  Json out = write_question(r.question);
  out["numerics"] = r.numerics;
  out["device"] = {{"vendor", r.device.vendor},
                   {"arch", r.device.arch},
                   {"name", r.device.name},
                   {"compute_units", r.device.compute_units},
                   {"type", r.device.type},
                   {"max_work_group", r.device.max_work_group},
                   {"local_mem_bytes", r.device.local_mem_bytes},
                   {"max_alloc_bytes", r.device.max_alloc_bytes},
                   {"vector_width_float", r.device.vector_width_float}};
  out["software"] = {{"platform", r.software.platform},
                     {"opencl", r.software.opencl},
                     {"driver", r.software.driver}};
  out["plugin"] = {{"id", r.plugin}, {"content", r.content}};
  out["variant"] = r.variant;
  out["median_us"] = r.median_us;
  out["spread"] = r.spread;
  out["default"] = {
      {"plugin", r.default_plugin}, {"variant", r.default_variant}, {"median_us", r.default_us}};
  out["kernel_sets"] = r.kernel_sets;
  out["check"] = r.check;
  out["date"] = r.date;
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string question_json(const TunedQuestion& question) { return write_question(question).dump(); }

TunedQuestion question_from_json(const std::string& text) {
  try {
    return read_question(parse(text));
  } catch (const Damage& d) {
    fail(ErrorCode::kUsage, "a question that is none: ", d.why);
  }
}

}  // namespace netcl
