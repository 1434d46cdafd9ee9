#include "core/collective/memory_limit.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace netcl {

namespace {

// The number at the start of a file; none if the file is missing or says "max".
std::optional<uint64_t> read_number(const std::string& path) {
  std::ifstream in(path);
  uint64_t value = 0;
  if (in >> value) return value;
  return std::nullopt;
}

std::optional<uint64_t> meminfo_available() {
  std::ifstream in("/proc/meminfo");
  for (std::string key; in >> key;) {
    uint64_t kib = 0;
    if (key == "MemAvailable:" && in >> kib) return kib * 1024;
    in.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

// The tightest limit on the way from the process's control group to the root (version 2).
std::optional<uint64_t> cgroup_available() {
  std::ifstream in("/proc/self/cgroup");
  std::string path;
  for (std::string line; std::getline(in, line);) {
    if (line.compare(0, 3, "0::") == 0) path = line.substr(3);
  }
  std::optional<uint64_t> least;
  while (!path.empty()) {
    const std::string dir = "/sys/fs/cgroup" + path;
    const auto limit = read_number(dir + "/memory.max");
    const auto used = read_number(dir + "/memory.current");
    if (limit && used) {
      const uint64_t left = *limit > *used ? *limit - *used : 0;
      least = std::min(least.value_or(left), left);
    }
    const size_t slash = path.rfind('/');
    path.erase(slash == std::string::npos ? 0 : slash);
  }
  return least;
}

}  // namespace

uint64_t available_memory_bytes() {
  uint64_t bytes = std::numeric_limits<uint64_t>::max();
  if (const auto b = meminfo_available()) bytes = std::min(bytes, *b);
  if (const auto b = cgroup_available()) bytes = std::min(bytes, *b);
  return bytes;
}

int allocate_pages(int fd, uint64_t offset_bytes, uint64_t bytes) {
  const uint64_t available = available_memory_bytes();
  if (bytes > available - available / 32) return ENOMEM;
  return posix_fallocate(fd, static_cast<off_t>(offset_bytes), static_cast<off_t>(bytes));
}

}  // namespace netcl
