#include "core/base/append.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/base/unique_fd.h"

namespace netcl {
namespace fs = std::filesystem;

namespace {

// Whether the file's last line lacks its end.
bool cut_off(int fd, off_t size) {
  char last = '\n';
  return size > 0 && ::pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

}  // namespace

void append_line(const fs::path& path, std::string_view line, ErrorCode code) {
  std::error_code error;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  NETCL_CHECK(fd.valid(), code, path.string(), ": cannot be written: ", std::strerror(errno));
  struct stat before {};
  NETCL_CHECK(::fstat(fd.get(), &before) == 0, code, path.string(), ": ", std::strerror(errno));
  std::string bytes = cut_off(fd.get(), before.st_size) ? "\n" : "";
  bytes.append(line);
  bytes += '\n';
  ssize_t written = -1;
  do {
    written = ::write(fd.get(), bytes.data(), bytes.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(bytes.size()) && ::fsync(fd.get()) == 0) return;
  const int reason = written < 0 ? errno : ENOSPC;
  // Half a line is taken back where nobody has written behind it; else it is a line by itself.
  struct stat after {};
  if (written > 0 && ::fstat(fd.get(), &after) == 0 && after.st_size == before.st_size + written &&
      ::ftruncate(fd.get(), before.st_size) != 0) {
    fail(code, path.string(), ": half a line was written: ", std::strerror(reason));
  }
  fail(code, path.string(), ": cannot be written: ", std::strerror(reason));
}

}  // namespace netcl
