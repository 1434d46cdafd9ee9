#include "apps/netcl_app/formats/cifar.h"

#include "apps/netcl_app/formats/gzip.h"
#include "core/base/error.h"

namespace netcl::app {
namespace {

constexpr size_t kImageBytes = 3 * 32 * 32;

}  // namespace

void parse_cifar(std::string_view bytes, const std::string& path, int64_t classes, Samples& out) {
  const size_t label_bytes = classes == 10 ? 1 : 2;
  const size_t label_at = classes == 100 ? 1 : 0;
  const size_t record = label_bytes + kImageBytes;
  NETCL_CHECK(!bytes.empty(), ErrorCode::kData, path,
              ": the file is empty; expected CIFAR records");
  NETCL_CHECK(bytes.size() % record == 0, ErrorCode::kData, path, ": ", bytes.size(),
              " bytes are no whole number of records of ", record, " bytes (",
              label_bytes == 1 ? "a label" : "two labels",
              " and 3072 pixels); the file is truncated, or data.classes (", classes,
              ") does not fit it");
  for (size_t at = 0; at < bytes.size(); at += record) {
    const auto label = static_cast<uint8_t>(bytes[at + label_at]);
    NETCL_CHECK(label < classes, ErrorCode::kData, path, ": sample ", at / record,
                " (from 0) has label ", int{label}, "; expected less than ", classes,
                " (is this CIFAR in its binary form?)");
    out.labels.push_back(label);
    const std::string_view image = bytes.substr(at + label_bytes, kImageBytes);
    out.u8.insert(out.u8.end(), image.begin(), image.end());
  }
}

Samples read_cifar(const std::vector<std::string>& paths, int64_t classes) {
  Samples out;
  out.path = paths.front();
  out.dtype = DType::kU8;
  out.sample_shape = Shape({3, 32, 32});
  for (const std::string& path : paths) parse_cifar(read_data_file(path), path, classes, out);
  return out;
}

}  // namespace netcl::app
