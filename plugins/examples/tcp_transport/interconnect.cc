// The interconnect of the transport `tcp`: sockets between every two ranks. This file and its
// header are all that differs from the skeleton that `netcl-app plugins new transport` writes.
//
// Set-up: every rank listens on a port that the system chooses and tells the others through
// netcl's boot_exchange(), with a word that only ranks of this group then know: whoever connects
// must say it, so that no other program of this machine gets into the group. An exchange sends to
// all and receives from all at once, as far as the sockets let it, and sleeps in poll() otherwise.
#include "interconnect.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

using netcl::plugin::check;
using netcl::plugin::Failure;
using netcl::plugin::Host;

namespace {

constexpr int kLookEveryMs = 50;  // at the state of the group, while nothing arrives

[[noreturn]] void fail_system(netcl_rc code, const std::string& what) {
  throw Failure(code, what + ": " + std::strerror(errno));
}

sockaddr_in loopback(uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return out;
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}
Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

// What ranks tell each other through netcl (at most 256 bytes), and say when they connect.
struct Interconnect::Address {
  uint16_t port = 0;
  uint32_t rank = 0;
  unsigned char word[16] = {};
};

class Interconnect::Clock {
 public:
  explicit Clock(uint64_t timeout_ns) : timeout_(timeout_ns) {}
  bool over() const { return std::chrono::steady_clock::now() - begin_ > timeout_; }

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  const std::chrono::nanoseconds timeout_;
};

Interconnect::Interconnect(const Host& host, const netcl_group_spec& spec)
    : rank_(spec.rank),
      n_ranks_(spec.n_ranks),
      timeout_ns_(spec.timeout_ns),
      boot_(spec.boot),
      sockets_(n_ranks_),
      buffers_(n_ranks_, std::vector<char>(kMaxBytes)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  const Descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in place = loopback(0);
  socklen_t size = sizeof(place);
  auto* const generic = reinterpret_cast<sockaddr*>(&place);
  if (wake_.get() < 0 || listener.get() < 0 || ::bind(listener.get(), generic, size) != 0 ||
      ::listen(listener.get(), 128) != 0 || ::getsockname(listener.get(), generic, &size) != 0) {
    fail_system(NETCL_E_STATE, "tcp: a port to listen on");
  }
  std::vector<Address> all(n_ranks_);
  Address mine;
  mine.port = ntohs(place.sin_port);
  mine.rank = rank_;
  if (::getrandom(mine.word, sizeof(mine.word), 0) != sizeof(mine.word))
    fail_system(NETCL_E_STATE, "tcp: random bytes");
  check(host.table()->boot_exchange(host.call(), boot_, &mine, sizeof(mine), all.data()),
        "boot_exchange");
  meet(host, all, listener.get());
}

// Connects to the ranks below this one, and waits for those above.
void Interconnect::meet(const Host& host, const std::vector<Address>& all, int listener) {
  for (uint32_t r = 0; r < rank_; ++r) greet(r, all[r]);
  const Clock clock(timeout_ns_);
  const auto missing = [&] {
    for (uint32_t r = rank_ + 1; r < n_ranks_; ++r)
      if (sockets_[r].get() < 0) return true;
    return false;
  };
  while (missing()) {
    wait_for(listener, POLLIN, host, clock);
    Descriptor socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.get() >= 0) admit(std::move(socket), all[rank_]);
  }
  for (uint32_t r = 0; r < n_ranks_; ++r) {
    if (r == rank_) continue;
    const int fd = sockets_[r].get(), on = 1;
    if (::fcntl(fd, F_SETFL, O_NONBLOCK) != 0 ||
        ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0)
      fail_system(NETCL_E_STATE, "tcp: options of a socket");
  }
}

void Interconnect::greet(uint32_t rank, const Address& address) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in place = loopback(address.port);
  Address hello = address;  // its word, and who is calling
  hello.rank = rank_;
  if (socket.get() < 0 ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&place), sizeof(place)) != 0 ||
      ::send(socket.get(), &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello)) {
    fail_system(NETCL_E_PEER, "tcp: connecting to rank " + std::to_string(rank));
  }
  sockets_[rank] = std::move(socket);
}

// Keeps the socket if a rank of this group is at its other end.
void Interconnect::admit(Descriptor socket, const Address& mine) {
  const timeval second{1, 0};  // a rank says its word at once
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
  Address hello;
  if (::recv(socket.get(), &hello, sizeof(hello), MSG_WAITALL) != sizeof(hello)) return;
  if (std::memcmp(hello.word, mine.word, sizeof(mine.word)) != 0) return;
  if (hello.rank > rank_ && hello.rank < n_ranks_) sockets_[hello.rank] = std::move(socket);
}

void Interconnect::wait_for(int fd, short events, const Host& host, const Clock& clock) {
  pollfd polled[2] = {{fd, events, 0}, {wake_.get(), POLLIN, 0}};
  ::poll(polled, 2, kLookEveryMs);
  check_group(host, clock, "tcp: not all ranks have connected");
}

std::vector<const char*> Interconnect::exchange(const Host& host, uint64_t bytes,
                                                const std::string& what) {
  std::vector<uint64_t> sent(n_ranks_), received(n_ranks_);
  sent[rank_] = received[rank_] = bytes;
  const Clock clock(timeout_ns_);
  while (true) {
    std::vector<pollfd> polled = {{wake_.get(), POLLIN, 0}};
    uint32_t late = rank_;
    for (uint32_t r = 0; r < n_ranks_; ++r) {
      const bool to = sent[r] < bytes && send_some(r, bytes, &sent[r]);
      const bool from = received[r] < bytes && receive_some(r, bytes, &received[r]);
      if (!to && !from) continue;
      late = r;
      polled.push_back(
          {sockets_[r].get(), static_cast<short>((to ? POLLOUT : 0) | (from ? POLLIN : 0)), 0});
    }
    check_group(host, clock,
                what + ": rank " + std::to_string(rank_) + " waited in vain for rank " +
                    std::to_string(late));
    if (polled.size() == 1) break;
    ::poll(polled.data(), polled.size(), kLookEveryMs);
  }
  std::vector<const char*> out;
  for (const std::vector<char>& buffer : buffers_) out.push_back(buffer.data());
  return out;
}

// Both return whether there is more to do once the socket is ready.
bool Interconnect::send_some(uint32_t rank, uint64_t bytes, uint64_t* sent) {
  while (*sent < bytes) {
    const ssize_t n =
        ::send(sockets_[rank].get(), buffers_[rank_].data() + *sent, bytes - *sent, MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (n < 0) fail_system(NETCL_E_PEER, "tcp: sending to rank " + std::to_string(rank));
    *sent += static_cast<uint64_t>(n);
  }
  return false;
}

bool Interconnect::receive_some(uint32_t rank, uint64_t bytes, uint64_t* received) {
  while (*received < bytes) {
    const ssize_t n =
        ::recv(sockets_[rank].get(), buffers_[rank].data() + *received, bytes - *received, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (n < 0) fail_system(NETCL_E_PEER, "tcp: receiving from rank " + std::to_string(rank));
    if (n == 0)
      throw Failure(NETCL_E_PEER,
                    "tcp: rank " + std::to_string(rank) + " has closed its connection");
    *received += static_cast<uint64_t>(n);
  }
  return false;
}

// Throws if the group has ended, or if time is up, with the text `late`.
void Interconnect::check_group(const Host& host, const Clock& clock, const std::string& late) {
  check(host.table()->boot_status(host.call(), boot_), "boot_status");
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (aborted_) throw Failure(NETCL_E_CANCELLED, "aborted: " + reason_);
  }
  if (clock.over()) throw Failure(NETCL_E_TIMEOUT, late);
}

void Interconnect::abort(std::string_view reason) noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!aborted_) reason_ = reason;
    aborted_ = true;
  }
  const uint64_t one = 1;
  if (::write(wake_.get(), &one, sizeof(one)) < 0) return;  // full: it is awake already
}
