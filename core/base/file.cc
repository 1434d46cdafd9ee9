#include "core/base/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

#include "core/base/unique_fd.h"

namespace netcl {
namespace fs = std::filesystem;

std::string read_file(const fs::path& path, ErrorCode code) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  NETCL_CHECK(fd.valid(), code, path.string(), ": cannot be opened: ", std::strerror(errno));
  std::string out;
  std::array<char, 1 << 16> block;
  while (true) {
    const ssize_t n = ::read(fd.get(), block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    NETCL_CHECK(n >= 0, code, path.string(), ": cannot be read: ", std::strerror(errno));
    if (n == 0) return out;
    out.append(block.data(), static_cast<size_t>(n));
  }
}

namespace {

const char* advice(int error) {
  if (error == ENOSPC || error == EDQUOT)
    return "; free some space; what was there before is intact";
  if (error == EACCES || error == EROFS || error == EPERM)
    return "; allow writing there, or choose another place";
  return "";
}

void write_all(int fd, std::string_view bytes, const fs::path& path, ErrorCode code) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    NETCL_CHECK(n > 0, code, path.string(), ": cannot be written: ", std::strerror(errno),
                advice(errno));
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

void sync_directory(const fs::path& directory) {
  const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid()) ::fsync(fd.get());  // some file systems refuse; the rename stands all the same
}

}  // namespace

fs::path temporary_file(const fs::path& path) {
  const pid_t process = ::getpid(), thread = ::gettid();
  const std::string by_thread = thread == process ? "" : "-" + std::to_string(thread);
  return path.string() + by_thread + ".tmp" + std::to_string(process);
}

void write_file_atomic(const fs::path& path, std::string_view bytes, ErrorCode code) {
  const fs::path temporary = temporary_file(path);
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  NETCL_CHECK(fd.valid(), code, temporary.string(), ": cannot be created: ", std::strerror(errno),
              advice(errno));
  try {
    write_all(fd.get(), bytes, path, code);
    NETCL_CHECK(::fsync(fd.get()) == 0, code, path.string(),
                ": cannot be written to disk: ", std::strerror(errno), advice(errno));
    fd.reset();
    NETCL_CHECK(::rename(temporary.c_str(), path.c_str()) == 0, code, path.string(),
                ": cannot be replaced: ", std::strerror(errno));
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_directory(path.parent_path().empty() ? fs::path(".") : path.parent_path());
}

void remove_temporary_files(const fs::path& directory, int64_t pid) {
  std::error_code error;
  const std::string end = ".tmp" + std::to_string(pid);
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0) {
      found.push_back(entry.path());
    }
  }
  for (const fs::path& path : found) fs::remove(path, error);
}

uint64_t hash_bytes(std::string_view bytes, uint64_t seed) {
  uint64_t h = seed;
  for (const char c : bytes) {
    h ^= static_cast<unsigned char>(c);
    h *= 0x100000001b3ull;
  }
  return h;
}

std::string hex(uint64_t value) {
  std::array<char, 17> out;
  for (size_t i = 0; i < 16; ++i) out[i] = "0123456789abcdef"[(value >> (60 - 4 * i)) & 15];
  return std::string(out.data(), 16);
}

}  // namespace netcl
