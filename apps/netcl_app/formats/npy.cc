#include "apps/netcl_app/formats/npy.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "apps/netcl_app/formats/csv.h"
#include "apps/netcl_app/formats/gzip.h"
#include "apps/netcl_app/formats/zip.h"
#include "core/base/error.h"
#include "core/tensor/half.h"

namespace netcl::app {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr int64_t kMostElements = int64_t{1} << 40;

struct Header {
  std::string type;  // "<f4"
  bool fortran = false;
  std::vector<int64_t> dims;
};

// The dictionary that a NPY file begins with; keys in any order, blanks anywhere.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  Header run() {
    Header out;
    bool type = false, order = false, shape = false;
    expect('{');
    while (!take('}')) {
      const std::string key = text();
      expect(':');
      if (key == "descr") {
        NETCL_CHECK(peek() != '[', ErrorCode::kData, path_,
                    ": the array holds records; expected plain numbers (save each field alone)");
        out.type = text();
        type = true;
      } else if (key == "fortran_order") {
        out.fortran = truth();
        order = true;
      } else if (key == "shape") {
        out.dims = numbers();
        shape = true;
      } else {
        broken();
      }
      if (!take(',') && peek() != '}') broken();
    }
    if (!type || !order || !shape) broken();
    return out;
  }

 private:
  [[noreturn]] void broken() const {
    fail(ErrorCode::kData, path_, ": the NPY header is damaged: ", quoted(text_.substr(0, 80)));
  }
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) broken();
  }
  std::string text() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') broken();
    const size_t end = text_.find(quote, ++at_);
    if (end == std::string_view::npos) broken();
    std::string out(text_.substr(at_, end - at_));
    at_ = end + 1;
    return out;
  }
  bool truth() {
    peek();
    const bool yes = text_.compare(at_, 4, "True") == 0;
    if (!yes && text_.compare(at_, 5, "False") != 0) broken();
    at_ += yes ? 4 : 5;
    return yes;
  }
  std::vector<int64_t> numbers() {
    std::vector<int64_t> out;
    expect('(');
    while (!take(')')) {
      peek();
      int64_t value = 0;
      const auto [end, error] =
          std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (error != std::errc() || value < 0) broken();
      at_ = static_cast<size_t>(end - text_.data());
      take('L');
      out.push_back(value);
      if (!take(',') && peek() != ')') broken();
    }
    return out;
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
};

void set_type(const std::string& type, NpyArray& out) {
  const auto refuse = [&](const char* what) {
    fail(ErrorCode::kData, out.path, ": the array holds ", what, " (type ", quoted(type),
         "); expected numbers");
  };
  const std::string name = type.substr(type.find_first_not_of("<>|=") == std::string::npos
                                           ? type.size()
                                           : type.find_first_not_of("<>|="));
  if (name.empty()) refuse("values of an unknown type");
  if (name[0] == 'O') refuse("Python objects");
  if (name[0] == 'S' || name[0] == 'U' || name[0] == 'a') refuse("text");
  if (name[0] == 'c') refuse("complex numbers");
  if (name[0] == 'M' || name[0] == 'm') refuse("times");
  out.kind = name[0] == 'b'   ? NpyKind::kBool
             : name[0] == 'i' ? NpyKind::kSigned
             : name[0] == 'u' ? NpyKind::kUnsigned
                              : NpyKind::kFloat;
  const std::string size = name.substr(1);
  const bool known = out.kind == NpyKind::kBool ? size == "1"
                     : out.kind == NpyKind::kFloat
                         ? name[0] == 'f' && (size == "2" || size == "4" || size == "8")
                         : size == "1" || size == "2" || size == "4" || size == "8";
  if (!known) refuse("values of an unknown type");
  out.item_bytes = static_cast<size_t>(size[0] - '0');
}

// Big-endian files come from machines that netcl does not run on; all of these are little-endian.
void swap_bytes(std::string& data, size_t item) {
  for (size_t i = 0; i + item <= data.size(); i += item)
    std::reverse(data.begin() + static_cast<std::ptrdiff_t>(i),
                 data.begin() + static_cast<std::ptrdiff_t>(i + item));
}

// Column-major to row-major: walks the target in order and steps through the source.
std::string transposed(const std::string& data, const std::vector<int64_t>& dims, size_t item) {
  std::vector<size_t> step(dims.size(), 1), index(dims.size(), 0);
  for (size_t d = 1; d < dims.size(); ++d) step[d] = step[d - 1] * static_cast<size_t>(dims[d - 1]);
  std::string out(data.size(), '\0');
  size_t from = 0;
  for (size_t to = 0; to < data.size(); to += item) {
    std::memcpy(out.data() + to, data.data() + from * item, item);
    for (size_t d = dims.size(); d-- > 0;) {
      from += step[d];
      if (++index[d] < static_cast<size_t>(dims[d])) break;
      from -= step[d] * index[d];
      index[d] = 0;
    }
  }
  return out;
}

template <typename T>
T load(const std::string& data, size_t index) {
  T value;
  std::memcpy(&value, data.data() + index * sizeof(T), sizeof(T));
  return value;
}

// A whole number from 0 on that fits i32. Errors: kData.
int32_t as_index(const NpyArray& array, size_t index, size_t per_sample, const char* what) {
  const double value = array.at(index);
  const bool ignored = std::strcmp(what, "label") == 0 && value == kIgnoredLabel;
  NETCL_CHECK(ignored || (value >= 0 && value < 2147483648.0), ErrorCode::kData, array.path,
              ": sample ", index / per_sample, " (from 0) has the ", what, " ", value,
              "; expected a whole number from 0 to 2147483647");
  return static_cast<int32_t>(value);
}

Shape shape_of_sample(const NpyArray& array) {
  return Shape(std::vector<int64_t>(array.dims.begin() + 1, array.dims.end()));
}

NpyArray read_array(const std::string& path) { return parse_npy(read_data_file(path), path); }

NpyArray from_archive(const ZipArchive& archive, const std::string& name) {
  return parse_npy(archive.read(name + ".npy"), archive.path() + ":" + name);
}

}  // namespace

int64_t NpyArray::count() const {
  int64_t out = 1;
  for (const int64_t dim : dims) out *= dim;
  return out;
}

double NpyArray::at(size_t index) const {
  const bool is_signed = kind == NpyKind::kSigned;
  if (kind == NpyKind::kFloat) {
    if (item_bytes == 2) return static_cast<double>(f16_to_float(load<uint16_t>(data, index)));
    if (item_bytes == 4) return static_cast<double>(load<float>(data, index));
    return load<double>(data, index);
  }
  switch (item_bytes) {
    case 1:
      return is_signed ? load<int8_t>(data, index) : load<uint8_t>(data, index);
    case 2:
      return is_signed ? load<int16_t>(data, index) : load<uint16_t>(data, index);
    case 4:
      return is_signed ? load<int32_t>(data, index) : load<uint32_t>(data, index);
    default:
      return is_signed ? static_cast<double>(load<int64_t>(data, index))
                       : static_cast<double>(load<uint64_t>(data, index));
  }
}

NpyArray parse_npy(std::string_view bytes, const std::string& path) {
  NpyArray out;
  out.path = path;
  NETCL_CHECK(bytes.size() >= 10 && bytes.substr(0, 6) == kMagic, ErrorCode::kData, path,
              ": this is no NPY array; expected it to start with 93 'NUMPY'");
  const auto version = static_cast<uint8_t>(bytes[6]);
  NETCL_CHECK(version >= 1 && version <= 3, ErrorCode::kData, path, ": NPY version ", int{version},
              "; expected 1, 2 or 3");
  const size_t width = version == 1 ? 2 : 4;
  NETCL_CHECK(bytes.size() >= 8 + width, ErrorCode::kData, path,
              ": the file ends in its header; it is truncated");
  size_t length = 0;
  for (size_t i = width; i-- > 0;) length = length << 8 | static_cast<uint8_t>(bytes[8 + i]);
  NETCL_CHECK(length <= bytes.size() - 8 - width, ErrorCode::kData, path,
              ": the file ends in its header; it is truncated");
  const Header header = HeaderReader(bytes.substr(8 + width, length), path).run();
  set_type(header.type, out);
  out.dims = header.dims;
  int64_t count = 1;
  for (const int64_t dim : out.dims) {
    NETCL_CHECK(dim == 0 || count <= kMostElements / dim, ErrorCode::kData, path, ": the shape ",
                Shape(out.dims).str(), " is too large");
    count *= dim;
  }
  const std::string_view data = bytes.substr(8 + width + length);
  const size_t expected = static_cast<size_t>(count) * out.item_bytes;
  NETCL_CHECK(data.size() >= expected, ErrorCode::kData, path,
              ": the file is truncated: ", Shape(out.dims).str(), " needs ", expected,
              " bytes of values, there are ", data.size());
  NETCL_CHECK(data.size() == expected, ErrorCode::kData, path, ": ", data.size() - expected,
              " bytes after the end of the ", expected, " bytes that ", Shape(out.dims).str(),
              " needs");
  out.data.assign(data);
  if (header.type[0] == '>') swap_bytes(out.data, out.item_bytes);
  if (header.fortran && out.dims.size() > 1)
    out.data = transposed(out.data, out.dims, out.item_bytes);
  return out;
}

Samples features_of(const NpyArray& x, const DataConfig& config) {
  NETCL_CHECK(!x.dims.empty() && x.count() > 0, ErrorCode::kData, x.path,
              ": no samples: the shape is ", Shape(x.dims).str());
  Samples out;
  out.path = x.path;
  out.sample_shape = x.dims.size() == 1 ? Shape({1}) : shape_of_sample(x);
  const auto n = static_cast<size_t>(x.count());
  const size_t per_sample = n / static_cast<size_t>(x.dims[0]);
  if (config.tokens) {
    NETCL_CHECK(x.whole(), ErrorCode::kData, x.path,
                ": the tokens (data.tokens) are floating-point numbers; expected whole numbers");
    out.dtype = DType::kI32;
    out.i32.resize(n);
    for (size_t i = 0; i < n; ++i) out.i32[i] = as_index(x, i, per_sample, "token");
  } else if (x.whole() && x.item_bytes == 1 && x.kind != NpyKind::kSigned) {
    out.dtype = DType::kU8;
    out.u8.assign(x.data.begin(), x.data.end());
  } else {
    out.f32.resize(n);
    for (size_t i = 0; i < n; ++i) {
      out.f32[i] = static_cast<float>(x.at(i));
      NETCL_CHECK(std::isfinite(out.f32[i]), ErrorCode::kData, x.path, ": sample ", i / per_sample,
                  " (from 0) holds a value that is not finite, at element ", i % per_sample);
    }
  }
  return out;
}

Samples samples_of(const NpyArray& x, const NpyArray& y, const DataConfig& config) {
  Samples out = features_of(x, config);
  NETCL_CHECK(!y.dims.empty() && y.dims[0] == x.dims[0], ErrorCode::kData, y.path,
              ": labels of shape ", Shape(y.dims).str(), " for ", x.dims[0], " samples in ", x.path,
              "; expected as many of both");
  out.label_shape = shape_of_sample(y);
  const auto n = static_cast<size_t>(y.count());
  NETCL_CHECK(n > 0, ErrorCode::kData, y.path, ": no labels: the shape is ", Shape(y.dims).str());
  const size_t per_sample = n / static_cast<size_t>(y.dims[0]);
  if (y.whole() && !config.regression) {
    out.labels.resize(n);
    for (size_t i = 0; i < n; ++i) out.labels[i] = as_index(y, i, per_sample, "label");
    return out;
  }
  out.targets.resize(n);
  for (size_t i = 0; i < n; ++i) {
    out.targets[i] = static_cast<float>(y.at(i));
    NETCL_CHECK(std::isfinite(out.targets[i]), ErrorCode::kData, y.path, ": sample ",
                i / per_sample, " (from 0) has a target that is not finite");
  }
  return out;
}

Samples read_npy(const DataConfig& config, bool test) {
  if (config.format == DataFormat::kNpy) {
    return samples_of(read_array(test ? config.test : config.train),
                      read_array(test ? config.test_labels : config.train_labels), config);
  }
  const bool own_file = test && !config.test.empty();
  const ZipArchive archive(own_file ? config.test : config.train);
  const bool own_names = test && !config.test_features.empty();
  return samples_of(from_archive(archive, own_names ? config.test_features : config.features),
                    from_archive(archive, own_names ? config.test_array_labels : config.labels),
                    config);
}

std::string npy_of(const std::vector<float>& values, const Shape& shape) {
  std::string dims;
  for (const int64_t dim : shape.dims()) dims += std::to_string(dim) + ",";
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + dims + "), }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string out(kMagic);
  out += {'\x01', '\x00', static_cast<char>(header.size() & 255),
          static_cast<char>(header.size() >> 8)};
  out += header;
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return out;
}

}  // namespace netcl::app
