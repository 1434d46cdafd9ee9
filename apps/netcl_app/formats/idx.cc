#include "apps/netcl_app/formats/idx.h"

#include <cmath>
#include <cstring>

#include "apps/netcl_app/formats/gzip.h"
#include "core/base/error.h"

namespace netcl::app {
namespace {

enum IdxType : uint8_t {
  kIdxU8 = 0x08,
  kIdxI8 = 0x09,
  kIdxI16 = 0x0b,
  kIdxI32 = 0x0c,
  kIdxF32 = 0x0d,
  kIdxF64 = 0x0e,
};

struct IdxArray {
  uint8_t type = 0;
  std::vector<int64_t> dims;
  std::string_view data;
  int64_t count = 1;  // product of dims
};

size_t size_of_type(uint8_t type) {
  switch (type) {
    case kIdxU8:
    case kIdxI8:
      return 1;
    case kIdxI16:
      return 2;
    case kIdxI32:
    case kIdxF32:
      return 4;
    case kIdxF64:
      return 8;
    default:
      return 0;
  }
}

uint64_t big_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

double value_at(const IdxArray& array, size_t index) {
  const size_t size = size_of_type(array.type);
  const uint64_t raw = big_endian(array.data.substr(index * size, size));
  switch (array.type) {
    case kIdxU8:
      return static_cast<double>(raw);
    case kIdxI8:
      return static_cast<int8_t>(raw);
    case kIdxI16:
      return static_cast<int16_t>(raw);
    case kIdxI32:
      return static_cast<int32_t>(raw);
    case kIdxF32: {
      const uint32_t bits = static_cast<uint32_t>(raw);
      float value = 0.0f;
      std::memcpy(&value, &bits, sizeof(value));
      return static_cast<double>(value);
    }
    default: {
      double value = 0.0;
      std::memcpy(&value, &raw, sizeof(value));
      return value;
    }
  }
}

IdxArray parse_array(std::string_view bytes, const std::string& path) {
  NETCL_CHECK(!bytes.empty(), ErrorCode::kData, path, ": the file is empty; expected IDX data");
  const bool magic = bytes.size() >= 4 && bytes[0] == 0 && bytes[1] == 0 &&
                     size_of_type(static_cast<uint8_t>(bytes[2])) != 0 && bytes[3] > 0 &&
                     bytes[3] <= NETCL_MAX_RANK;
  NETCL_CHECK(magic, ErrorCode::kData, path,
              ": this is not IDX data; expected it to start with 00 00, a type (08 to 0e) and the "
              "number of dimensions (1 to ",
              NETCL_MAX_RANK, ")");
  IdxArray out;
  out.type = static_cast<uint8_t>(bytes[2]);
  const size_t rank = static_cast<size_t>(bytes[3]);
  const size_t header = 4 + 4 * rank;
  NETCL_CHECK(bytes.size() >= header, ErrorCode::kData, path,
              ": the file ends in its header, after ", bytes.size(), " bytes of ", header,
              "; it is truncated");
  const uint64_t limit = uint64_t{1} << 42;
  uint64_t count = 1;
  for (size_t i = 0; i < rank; ++i) {
    const uint64_t dim = big_endian(bytes.substr(4 + 4 * i, 4));
    out.dims.push_back(static_cast<int64_t>(dim));
    count = dim != 0 && count > limit / dim ? limit : count * dim;
  }
  out.data = bytes.substr(header);
  out.count = static_cast<int64_t>(count);
  const uint64_t expected = count * size_of_type(out.type);
  NETCL_CHECK(out.data.size() >= expected, ErrorCode::kData, path,
              ": the file is truncated: ", Shape(out.dims).str(), " needs ", expected,
              " bytes of values, there are ", out.data.size());
  NETCL_CHECK(out.data.size() == expected, ErrorCode::kData, path, ": ", out.data.size() - expected,
              " bytes after the end of the ", expected, " bytes that ", Shape(out.dims).str(),
              " needs");
  return out;
}

// A plain list of numbers is one feature a sample.
Shape shape_of_sample(const IdxArray& array) {
  return array.dims.size() == 1
             ? Shape({1})
             : Shape(std::vector<int64_t>(array.dims.begin() + 1, array.dims.end()));
}

void copy_features(const IdxArray& array, const std::string& path, Samples& out) {
  if (array.type == kIdxU8) {
    out.dtype = DType::kU8;
    out.u8.assign(array.data.begin(), array.data.end());
    return;
  }
  const size_t per_sample = static_cast<size_t>(array.count / array.dims[0]);
  out.f32.resize(static_cast<size_t>(array.count));
  for (size_t i = 0; i < out.f32.size(); ++i) {
    out.f32[i] = static_cast<float>(value_at(array, i));
    NETCL_CHECK(std::isfinite(out.f32[i]), ErrorCode::kData, path, ": sample ", i / per_sample,
                " (from 0) holds a value that is not finite, at element ", i % per_sample);
  }
}

void copy_labels(const IdxArray& array, const std::string& path, Samples& out) {
  NETCL_CHECK(array.dims.size() == 1, ErrorCode::kData, path, ": labels of shape ",
              Shape(array.dims).str(),
              "; expected one dimension (are features and labels swapped?)");
  NETCL_CHECK(array.type != kIdxF32 && array.type != kIdxF64, ErrorCode::kData, path,
              ": the labels are floating-point numbers; expected whole numbers");
  out.labels.resize(static_cast<size_t>(array.count));
  for (size_t i = 0; i < out.labels.size(); ++i) {
    out.labels[i] = static_cast<int32_t>(value_at(array, i));
    NETCL_CHECK(out.labels[i] >= 0, ErrorCode::kData, path, ": sample ", i, " (from 0) has label ",
                out.labels[i], "; expected at least 0");
  }
}

}  // namespace

Samples parse_idx(std::string_view features, const std::string& features_path,
                  std::string_view labels, const std::string& labels_path) {
  const IdxArray x = parse_array(features, features_path);
  const IdxArray y = parse_array(labels, labels_path);
  NETCL_CHECK(x.count > 0, ErrorCode::kData, features_path, ": no samples: the shape is ",
              Shape(x.dims).str());
  Samples out;
  out.path = features_path;
  copy_labels(y, labels_path, out);
  NETCL_CHECK(x.dims[0] == y.dims[0], ErrorCode::kData, labels_path, ": ", y.dims[0],
              " labels for ", x.dims[0], " samples in ", features_path,
              "; expected as many of both");
  out.sample_shape = shape_of_sample(x);
  copy_features(x, features_path, out);
  return out;
}

Samples read_idx(const std::string& features_path, const std::string& labels_path) {
  const std::string features = read_data_file(features_path);
  return parse_idx(features, features_path, read_data_file(labels_path), labels_path);
}

Samples read_idx_features(const std::string& path) {
  const std::string bytes = read_data_file(path);
  const IdxArray x = parse_array(bytes, path);
  NETCL_CHECK(x.count > 0, ErrorCode::kData, path, ": no samples: the shape is ",
              Shape(x.dims).str());
  Samples out;
  out.path = path;
  out.sample_shape = shape_of_sample(x);
  copy_features(x, path, out);
  return out;
}

}  // namespace netcl::app
