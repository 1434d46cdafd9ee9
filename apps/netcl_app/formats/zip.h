// ZIP archives as NumPy writes them (NPZ): stored or deflated members, checked by CRC.
// Threads: reading from many.
#ifndef NETCL_APPS_NETCL_APP_FORMATS_ZIP_H_
#define NETCL_APPS_NETCL_APP_FORMATS_ZIP_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace netcl::app {

class ZipArchive {
 public:
  // Reads the file and its directory. Errors: kData for what is no archive or is truncated.
  explicit ZipArchive(const std::string& path);
  // The same for bytes at hand.
  ZipArchive(std::string bytes, std::string path);

  const std::string& path() const { return path_; }
  std::vector<std::string> names() const;
  // A member's content. Errors: kData with the nearest name for one that is not there; for damaged,
  // encrypted or otherwise packed members.
  std::string read(const std::string& name) const;

 private:
  struct Member {
    std::string name;
    uint16_t flags = 0, method = 0;
    uint32_t crc = 0;
    uint64_t packed_bytes = 0, bytes = 0, header_at = 0;
  };
  void read_directory();
  uint64_t number(uint64_t at, size_t bytes) const;

  std::string path_, bytes_;
  std::vector<Member> members_;
};

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_FORMATS_ZIP_H_
