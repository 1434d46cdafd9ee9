#include "apps/netcl_app/formats/zip.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/text.h"

namespace netcl::app {
namespace {

constexpr uint32_t kLocalMagic = 0x04034b50, kMemberMagic = 0x02014b50, kEndMagic = 0x06054b50;
constexpr uint32_t kEnd64Magic = 0x06064b50, kLocator64Magic = 0x07064b50;
constexpr uint64_t kEndBytes = 22, kMemberBytes = 46, kLocalBytes = 30, kLocatorBytes = 20;
constexpr uint64_t kMostCommentBytes = 65535;
constexpr uint32_t kInZip64 = 0xffffffffu;
constexpr uint64_t kMostBytes = uint64_t{1} << 40;
constexpr uInt kBlock = 1u << 20;

// Unpacks raw deflate data. Errors: kData.
std::string inflated(std::string_view packed, uint64_t bytes, const std::string& name) {
  z_stream stream{};
  NETCL_CHECK(::inflateInit2(&stream, -15) == Z_OK, ErrorCode::kData, name,
              ": cannot be unpacked: no memory");
  std::string out;
  std::string block(kBlock, '\0');
  int status = Z_OK;
  size_t taken = 0;
  while (status == Z_OK && out.size() <= bytes) {
    if (stream.avail_in == 0) {
      const size_t part = std::min<size_t>(kBlock, packed.size() - taken);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + taken));
      stream.avail_in = static_cast<uInt>(part);
      taken += part;
    }
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = kBlock;
    status = ::inflate(&stream, Z_NO_FLUSH);
    out.append(block, 0, kBlock - stream.avail_out);
  }
  ::inflateEnd(&stream);
  NETCL_CHECK(status == Z_STREAM_END && out.size() == bytes, ErrorCode::kData, name,
              ": the packed data is damaged");
  return out;
}

}  // namespace

ZipArchive::ZipArchive(const std::string& path)
    : ZipArchive(read_file(path, ErrorCode::kData), path) {}

ZipArchive::ZipArchive(std::string bytes, std::string path)
    : path_(std::move(path)), bytes_(std::move(bytes)) {
  read_directory();
}

uint64_t ZipArchive::number(uint64_t at, size_t bytes) const {
  NETCL_CHECK(at <= bytes_.size() && bytes <= bytes_.size() - at, ErrorCode::kData, path_,
              ": the archive is damaged or truncated");
  uint64_t out = 0;
  for (size_t i = bytes; i-- > 0;) out = out << 8 | static_cast<uint8_t>(bytes_[at + i]);
  return out;
}

void ZipArchive::read_directory() {
  NETCL_CHECK(bytes_.size() >= 4 && bytes_[0] == 'P' && bytes_[1] == 'K', ErrorCode::kData, path_,
              ": this is no archive (.npz, a ZIP file of arrays)");
  const uint64_t size = bytes_.size();
  const uint64_t first =
      size > kEndBytes + kMostCommentBytes ? size - kEndBytes - kMostCommentBytes : 0;
  uint64_t end = size;
  for (uint64_t at = size >= kEndBytes ? size - kEndBytes + 1 : 0; at-- > first;) {
    if (number(at, 4) != kEndMagic) continue;
    end = at;
    break;
  }
  NETCL_CHECK(end < size, ErrorCode::kData, path_,
              ": the archive has no directory; the file is truncated: copy or download it again");
  uint64_t count = number(end + 10, 2), at = number(end + 16, 4);
  if (end >= kLocatorBytes && number(end - kLocatorBytes, 4) == kLocator64Magic) {
    const uint64_t end64 = number(end - kLocatorBytes + 8, 8);
    NETCL_CHECK(number(end64, 4) == kEnd64Magic, ErrorCode::kData, path_,
                ": the archive's directory is damaged");
    count = number(end64 + 32, 8);
    at = number(end64 + 48, 8);
  }
  for (uint64_t i = 0; i < count; ++i) {
    NETCL_CHECK(number(at, 4) == kMemberMagic, ErrorCode::kData, path_,
                ": the archive's directory is damaged");
    Member member;
    member.flags = static_cast<uint16_t>(number(at + 8, 2));
    member.method = static_cast<uint16_t>(number(at + 10, 2));
    member.crc = static_cast<uint32_t>(number(at + 16, 4));
    member.packed_bytes = number(at + 20, 4);
    member.bytes = number(at + 24, 4);
    const uint64_t name = number(at + 28, 2), extra = number(at + 30, 2);
    const uint64_t comment = number(at + 32, 2);
    member.header_at = number(at + 42, 4);
    at += kMemberBytes;
    number(at, name + extra);  // is it there?
    member.name = bytes_.substr(at, name);
    // Sizes that do not fit 32 bits stand in an extra field, in this order.
    for (uint64_t e = at + name; e + 4 <= at + name + extra;) {
      const uint64_t id = number(e, 2), length = number(e + 2, 2);
      uint64_t next = e + 4;
      for (uint64_t* value : {&member.bytes, &member.packed_bytes, &member.header_at}) {
        if (id != 1 || *value != kInZip64 || next + 8 > e + 4 + length) continue;
        *value = number(next, 8);
        next += 8;
      }
      e += 4 + length;
    }
    at += name + extra + comment;
    members_.push_back(std::move(member));
  }
}

std::vector<std::string> ZipArchive::names() const {
  std::vector<std::string> out;
  for (const Member& member : members_) out.push_back(member.name);
  return out;
}

std::string ZipArchive::read(const std::string& name) const {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const Member& member) { return member.name == name; });
  NETCL_CHECK(found != members_.end(), ErrorCode::kData, path_, ": there is no ", name,
              " in the archive", suggest(name, names()), "; it holds ",
              members_.empty() ? "nothing" : join(names(), ", "));
  const std::string who = path_ + ": " + name;
  NETCL_CHECK((found->flags & 1) == 0 && (found->method == 0 || found->method == 8),
              ErrorCode::kData, who, ": it is encrypted or packed in a way that is not read here");
  NETCL_CHECK(number(found->header_at, 4) == kLocalMagic, ErrorCode::kData, who,
              ": the archive is damaged");
  const uint64_t at = found->header_at + kLocalBytes + number(found->header_at + 26, 2) +
                      number(found->header_at + 28, 2);
  NETCL_CHECK(found->bytes <= kMostBytes && at <= bytes_.size() &&
                  found->packed_bytes <= bytes_.size() - at,
              ErrorCode::kData, who, ": the archive is damaged or truncated");
  const std::string_view packed = std::string_view(bytes_).substr(at, found->packed_bytes);
  std::string out = found->method == 0 ? std::string(packed) : inflated(packed, found->bytes, who);
  const auto* data = reinterpret_cast<const Bytef*>(out.data());
  NETCL_CHECK(out.size() == found->bytes && ::crc32_z(0, data, out.size()) == found->crc,
              ErrorCode::kData, who, ": the content does not match its checksum");
  return out;
}

}  // namespace netcl::app
