#include "core/distributed/fd_channel.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/base/error.h"

namespace netcl {

std::pair<UniqueFd, UniqueFd> FdChannel::pair() {
  int ends[2] = {-1, -1};
  NETCL_CHECK(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0,
              ErrorCode::kTraining, "cannot make a channel to a worker: ", std::strerror(errno));
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

bool FdChannel::send(const std::string& text, const std::vector<int>& fds) const {
  NETCL_CHECK(!text.empty() && text.size() <= kMostBytes && fds.size() <= kMostFds,
              ErrorCode::kInternal, "a message of ", text.size(), " bytes and ", fds.size(),
              " descriptors");
  iovec bytes{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostFds * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  }
  ssize_t n = 0;
  do {
    n = ::sendmsg(end_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) return false;
  NETCL_CHECK(n == static_cast<ssize_t>(text.size()), ErrorCode::kTraining,
              "cannot send to a worker: ", std::strerror(errno));
  return true;
}

FdChannel::Message FdChannel::receive() const {
  std::array<char, kMostBytes> buffer{};
  iovec bytes{buffer.data(), buffer.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostFds * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t n = 0;
  do {
    n = ::recvmsg(end_.get(), &message, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  NETCL_CHECK(n > 0, ErrorCode::kTraining, "the other process has closed its channel",
              n < 0 ? str_cat(": ", std::strerror(errno)) : "");
  Message out;
  out.text.assign(buffer.data(), static_cast<size_t>(n));
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      out.fds.emplace_back(fd);
    }
  }
  return out;
}

}  // namespace netcl
