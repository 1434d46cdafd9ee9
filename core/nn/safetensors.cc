#include "core/nn/safetensors.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"

namespace netcl {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  // writing keeps the tensors' order

constexpr int kMaxDepth = 4;  // a header needs three levels; deeper ones could exhaust the stack
constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMaxHeader = 100'000'000;  // the format's own bound
constexpr size_t kAlign = 8;                  // the data starts at a multiple of it
constexpr const char* kMetadata = "__metadata__";

// The format's names are netcl's in capitals.
std::string type_name(DType dtype) {
  std::string out = dtype_name(dtype);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

// A value for a message, shortened: a damaged header may hold anything.
std::string brief(const Json& value) {
  const std::string text = value.dump();
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

// Where a header entry says its bytes lie.
struct Entry {
  NamedTensor tensor;
  uint64_t begin = 0;
  uint64_t end = 0;
};

std::optional<uint64_t> whole_number(const Json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  return value.get<uint64_t>();
}

// Parses one header entry; `data_bytes` is the size of what follows the header.
Entry parse_entry(const std::string& tensor, const Json& json, uint64_t data_bytes,
                  const std::string& file) {
  const auto check = [&](bool good, const std::string& message) {
    NETCL_CHECK(good, ErrorCode::kCheckpoint, file, ": tensor \"", tensor, "\": ", message);
  };
  check(json.is_object() && json.contains("dtype") && json.contains("shape") &&
            json.contains("data_offsets"),
        "the header entry lacks dtype, shape or data_offsets");
  Entry entry;
  entry.tensor.name = tensor;
  const Json& type = json["dtype"];
  bool known = false;
  for (const DType dtype : kAllDTypes) {
    if (type.is_string() && type.get<std::string>() == type_name(dtype)) {
      entry.tensor.dtype = dtype;
      known = true;
    }
  }
  check(known, "data type " + brief(type) +
                   " is not supported; expected F32, F16, BF16, I32, I64, U8 or BOOL");

  const Json& shape = json["shape"];
  check(shape.is_array() && shape.size() <= NETCL_MAX_RANK,
        str_cat("the shape is ", brief(shape), "; expected a list of at most ", NETCL_MAX_RANK));
  std::vector<int64_t> dims;
  uint64_t bytes = size_of(entry.tensor.dtype);
  for (const Json& value : shape) {
    const auto dim = whole_number(value);
    const uint64_t limit = uint64_t{1} << 62;
    check(dim && *dim < limit && (*dim == 0 || bytes <= limit / *dim),
          "the shape " + brief(shape) + " is not one of whole numbers of a possible size");
    bytes *= *dim;
    dims.push_back(static_cast<int64_t>(*dim));
  }
  entry.tensor.shape = Shape(std::move(dims));

  const Json& offsets = json["data_offsets"];
  check(offsets.is_array() && offsets.size() == 2 && whole_number(offsets[0]) &&
            whole_number(offsets[1]),
        "data_offsets is " + brief(offsets) + "; expected [begin, end]");
  entry.begin = *whole_number(offsets[0]);
  entry.end = *whole_number(offsets[1]);
  check(entry.begin <= entry.end && entry.end <= data_bytes,
        str_cat("its bytes ", brief(offsets), " lie outside the file's ", data_bytes,
                " bytes of data; the file is truncated or damaged"));
  check(entry.end - entry.begin == bytes,
        str_cat("its ", entry.end - entry.begin, " bytes do not fit ",
                type_name(entry.tensor.dtype), entry.tensor.shape.str(), ", which needs ", bytes));
  return entry;
}

std::map<std::string, std::string> parse_metadata(const Json& json, const std::string& file) {
  NETCL_CHECK(json.is_object(), ErrorCode::kCheckpoint, file, ": __metadata__ is no object");
  std::map<std::string, std::string> out;
  for (const auto& item : json.items()) {
    NETCL_CHECK(item.value().is_string(), ErrorCode::kCheckpoint, file, ": __metadata__ \"",
                item.key(), "\" is ", brief(item.value()), "; expected text");
    out[item.key()] = item.value().get<std::string>();
  }
  return out;
}

// Parses the header; a key given twice is refused, since readers differ in which one they take.
Json parse_header(std::string_view text, const std::string& file) {
  std::set<std::string> names;
  std::string twice;
  bool deep = false;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMaxDepth) {
      deep = true;
      return false;
    }
    if (event == Json::parse_event_t::key && depth == 1) {
      const std::string key = parsed.get<std::string>();
      if (!names.insert(key).second) twice = key;
    }
    return true;
  };
  Json header = Json::parse(text, watch, /*allow_exceptions=*/false);
  NETCL_CHECK(!deep && !header.is_discarded() && header.is_object(), ErrorCode::kCheckpoint, file,
              ": the safetensors header is no plain JSON object; the file is damaged");
  NETCL_CHECK(twice.empty(), ErrorCode::kCheckpoint, file, ": tensor \"", twice,
              "\" occurs twice in the header");
  return header;
}

}  // namespace

const NamedTensor* Safetensors::find(std::string_view name) const {
  for (const NamedTensor& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

std::string to_safetensors(const Safetensors& content) {
  OrderedJson header = OrderedJson::object();
  if (!content.metadata.empty()) header[kMetadata] = content.metadata;
  uint64_t offset = 0;
  for (const NamedTensor& tensor : content.tensors) {
    NETCL_CHECK(!header.contains(tensor.name) && tensor.name != kMetadata, ErrorCode::kInternal,
                "safetensors: the tensor name \"", tensor.name, "\" is taken");
    NETCL_CHECK(tensor.bytes.size() == tensor.desc().size_bytes(), ErrorCode::kInternal,
                "safetensors: tensor \"", tensor.name, "\": ", tensor.bytes.size(), " bytes for ",
                tensor.desc().str());
    const uint64_t end = offset + tensor.bytes.size();
    header[tensor.name] = {{"dtype", type_name(tensor.dtype)},
                           {"shape", tensor.shape.dims()},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + kAlign - 1) / kAlign * kAlign, ' ');
  std::string out;
  out.reserve(kLengthBytes + text.size() + offset);
  for (size_t i = 0; i < kLengthBytes; ++i) {
    out += static_cast<char>((static_cast<uint64_t>(text.size()) >> (8 * i)) & 0xff);
  }
  out += text;
  for (const NamedTensor& tensor : content.tensors) out += tensor.bytes;
  return out;
}

Safetensors parse_safetensors(std::string_view bytes, const std::string& name) {
  NETCL_CHECK(bytes.size() >= kLengthBytes, ErrorCode::kCheckpoint, name, ": ", bytes.size(),
              " bytes are no safetensors file; expected at least 8");
  uint64_t length = 0;
  for (size_t i = kLengthBytes; i-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(bytes[i]);
  }
  NETCL_CHECK(length <= kMaxHeader && length <= bytes.size() - kLengthBytes, ErrorCode::kCheckpoint,
              name, ": the header says it has ", length, " bytes; the file has ",
              bytes.size() - kLengthBytes,
              " after its length: it is truncated, or no safetensors file");
  const Json header = parse_header(bytes.substr(kLengthBytes, length), name);
  const std::string_view data = bytes.substr(kLengthBytes + length);

  Safetensors out;
  std::vector<Entry> entries;
  for (const auto& item : header.items()) {
    if (item.key() == kMetadata) {
      out.metadata = parse_metadata(item.value(), name);
    } else {
      entries.push_back(parse_entry(item.key(), item.value(), data.size(), name));
    }
  }
  // By both ends, so that empty tensors come before the one that starts where they lie.
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t at = 0;
  for (Entry& entry : entries) {
    NETCL_CHECK(entry.begin == at, ErrorCode::kCheckpoint, name, ": tensor \"", entry.tensor.name,
                "\" starts at byte ", entry.begin, " of the data; expected ", at, ": tensors ",
                entry.begin < at ? "overlap" : "leave a gap");
    entry.tensor.bytes = std::string(data.substr(entry.begin, entry.end - entry.begin));
    at = entry.end;
    out.tensors.push_back(std::move(entry.tensor));
  }
  NETCL_CHECK(at == data.size(), ErrorCode::kCheckpoint, name, ": ", data.size() - at,
              " bytes after the last tensor belong to none");
  return out;
}

void write_safetensors(const std::filesystem::path& path, const Safetensors& content) {
  write_file_atomic(path, to_safetensors(content), ErrorCode::kCheckpoint);
}

Safetensors read_safetensors(const std::filesystem::path& path) {
  return parse_safetensors(read_file(path, ErrorCode::kCheckpoint), path.string());
}

}  // namespace netcl
