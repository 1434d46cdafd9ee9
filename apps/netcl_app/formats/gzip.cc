#include "apps/netcl_app/formats/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"

namespace netcl::app {
namespace {

constexpr size_t kBlock = size_t{1} << 18;

bool starts_as_gzip(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

// Owns a zlib stream.
class Inflater {
 public:
  explicit Inflater(const std::string& name) : name_(name) {
    // 15 bits of window; +16: gzip wrapping only.
    NETCL_CHECK(::inflateInit2(&stream_, 15 + 16) == Z_OK, ErrorCode::kData, name,
                ": cannot be unpacked: no memory");
  }
  ~Inflater() { ::inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Unpacks one member from the start of `bytes` to the end of `out`; returns its packed size.
  size_t member(std::string_view bytes, std::string& out) {
    ::inflateReset(&stream_);
    size_t taken = 0;
    int status = Z_OK;
    stream_.avail_in = 0;
    while (status != Z_STREAM_END) {
      if (stream_.avail_in == 0) {
        const size_t part = std::min(kBlock, bytes.size() - taken);
        NETCL_CHECK(part > 0, ErrorCode::kData, name_, ": the gzip data ends early, after ",
                    bytes.size(), " bytes; the file is truncated: copy or download it again");
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + taken));
        stream_.avail_in = static_cast<uInt>(part);
        taken += part;
      }
      stream_.next_out = block_.data();
      stream_.avail_out = static_cast<uInt>(block_.size());
      status = ::inflate(&stream_, Z_NO_FLUSH);
      NETCL_CHECK(status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR,
                  ErrorCode::kData, name_, ": the gzip data is damaged: ",
                  stream_.msg != nullptr ? stream_.msg : "unknown reason");
      out.append(reinterpret_cast<const char*>(block_.data()), block_.size() - stream_.avail_out);
    }
    return taken - stream_.avail_in;
  }

 private:
  const std::string& name_;
  z_stream stream_{};
  std::vector<Bytef> block_ = std::vector<Bytef>(kBlock);
};

}  // namespace

std::string gunzip(std::string_view bytes, const std::string& name) {
  NETCL_CHECK(starts_as_gzip(bytes), ErrorCode::kData, name, ": this is not gzip data",
              bytes.empty() ? " (the file is empty)" : "");
  Inflater inflater(name);
  std::string out;
  while (!bytes.empty()) {
    NETCL_CHECK(starts_as_gzip(bytes), ErrorCode::kData, name, ": ", bytes.size(),
                " bytes after the end of the gzip data");
    bytes.remove_prefix(inflater.member(bytes, out));
  }
  return out;
}

std::string read_data_file(const std::string& path) {
  std::string bytes = read_file(path, ErrorCode::kData);
  const bool named_gzip = path.size() > 3 && path.compare(path.size() - 3, 3, ".gz") == 0;
  return named_gzip || starts_as_gzip(bytes) ? gunzip(bytes, path) : bytes;
}

}  // namespace netcl::app
