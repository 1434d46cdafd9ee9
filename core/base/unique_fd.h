// Owns a file descriptor.
#ifndef NETCL_CORE_BASE_UNIQUE_FD_H_
#define NETCL_CORE_BASE_UNIQUE_FD_H_

#include <unistd.h>

#include <utility>

namespace netcl {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~UniqueFd() { reset(); }

  bool valid() const { return fd_ >= 0; }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace netcl

#endif  // NETCL_CORE_BASE_UNIQUE_FD_H_
