#include "core/distributed/process.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/base/error.h"

namespace netcl {

namespace {

// The attributes and file actions of one posix_spawn.
class SpawnPlan {
 public:
  SpawnPlan() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  void set_signals(bool own_process_group) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    if (own_process_group) flags |= POSIX_SPAWN_SETPGROUP;
    posix_spawnattr_setflags(&attributes_, static_cast<short>(flags));
  }

  // Gives the child the descriptors under their new numbers and closes every other from 3 on.
  void set_descriptors(const std::vector<InheritedFd>& descriptors) {
    int highest = 2;
    for (const InheritedFd& d : descriptors) highest = std::max(highest, d.child_fd);
    std::vector<bool> taken(static_cast<size_t>(highest) + 1, false);
    for (const InheritedFd& d : descriptors) {
      const auto index = static_cast<size_t>(d.child_fd);
      NETCL_CHECK(d.child_fd >= 0 && !taken[index], ErrorCode::kInternal, "descriptor ", d.child_fd,
                  " of a child process is given twice or negative");
      taken[index] = true;
      // Copies above every target: no dup2 overwrites the source of a later one.
      copies_.emplace_back(fcntl(d.parent_fd, F_DUPFD_CLOEXEC, highest + 1));
      NETCL_CHECK(copies_.back().valid(), ErrorCode::kTraining, "cannot pass descriptor ",
                  d.parent_fd, " to a child process: ", strerror(errno));
    }
    for (size_t i = 0; i < descriptors.size(); ++i) {
      posix_spawn_file_actions_adddup2(&actions_, copies_[i].get(), descriptors[i].child_fd);
    }
    if (!taken[0]) posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    for (int fd = 3; fd < highest; ++fd) {
      if (!taken[static_cast<size_t>(fd)]) posix_spawn_file_actions_addclose(&actions_, fd);
    }
    posix_spawn_file_actions_addclosefrom_np(&actions_, highest + 1);
  }

  pid_t spawn(const SpawnOptions& options) {
    std::vector<char*> argv, env;
    for (const std::string& a : options.argv) argv.push_back(const_cast<char*>(a.c_str()));
    for (const std::string& e : options.environment) env.push_back(const_cast<char*>(e.c_str()));
    argv.push_back(nullptr);
    env.push_back(nullptr);
    pid_t pid = -1;
    const int rc = posix_spawn(&pid, options.argv[0].c_str(), &actions_, &attributes_, argv.data(),
                               env.data());
    NETCL_CHECK(rc == 0, ErrorCode::kTraining, "cannot start ", options.argv[0], ": ",
                strerror(rc));
    return pid;
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
  std::vector<UniqueFd> copies_;
};

std::optional<ExitStatus> reap(pid_t pid, int options) {
  int raw = 0;
  pid_t rc = 0;
  do {
    rc = waitpid(pid, &raw, options);
  } while (rc < 0 && errno == EINTR);
  if (rc == 0) return std::nullopt;
  if (rc < 0) return ExitStatus{false, -1};  // somebody else has reaped it
  if (WIFSIGNALED(raw)) return ExitStatus{true, WTERMSIG(raw)};
  return ExitStatus{false, WEXITSTATUS(raw)};
}

}  // namespace

std::string ExitStatus::describe() const {
  if (!by_signal) {
    return value < 0 ? "ended in an unknown way" : str_cat("exit code ", value);
  }
  const char* name = sigabbrev_np(value);
  return str_cat("killed by signal ", value, name == nullptr ? "" : str_cat(" (SIG", name, ")"));
}

ChildProcess::ChildProcess(const SpawnOptions& options) {
  NETCL_CHECK(!options.argv.empty(), ErrorCode::kInternal, "a child process needs a program");
  std::vector<InheritedFd> descriptors = options.descriptors;
  UniqueFd write_end;
  if (options.status_fd >= 0) {
    int ends[2] = {-1, -1};
    NETCL_CHECK(pipe2(ends, O_CLOEXEC) == 0, ErrorCode::kTraining,
                "cannot make a pipe: ", strerror(errno));
    status_fd_.reset(ends[0]);
    write_end.reset(ends[1]);
    descriptors.push_back({write_end.get(), options.status_fd});
  }
  SpawnPlan plan;
  plan.set_signals(options.own_process_group);
  plan.set_descriptors(descriptors);
  pid_ = plan.spawn(options);
  // The child stays in the process table until it is reaped here, so its number is still its own.
  pidfd_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (!pidfd_.valid()) {
    const int error = errno;
    ::kill(pid_, SIGKILL);
    reap(pid_, 0);
    fail(ErrorCode::kTraining, "cannot watch a child process: ", strerror(error),
         "; netcl needs Linux 5.3 or later");
  }
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      status_fd_(std::move(other.status_fd_)),
      status_(other.status_) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this == &other) return *this;
  if (pid_ > 0) kill();
  pid_ = std::exchange(other.pid_, -1);
  pidfd_ = std::move(other.pidfd_);
  status_fd_ = std::move(other.status_fd_);
  status_ = other.status_;
  return *this;
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) kill();
}

std::optional<ExitStatus> ChildProcess::exit_status() {
  if (!status_ && pid_ > 0) status_ = reap(pid_, WNOHANG);
  return status_;
}

bool ChildProcess::stopped() const {
  if (status_ || pid_ <= 0) return false;
  siginfo_t info{};
  // WNOWAIT leaves the state as it is, to be asked again.
  const int rc = waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG | WNOWAIT);
  return rc == 0 && info.si_pid == pid_;
}

std::optional<ExitStatus> ChildProcess::wait(int timeout_ms) {
  if (status_ || pid_ <= 0) return status_;
  timespec start{};
  clock_gettime(CLOCK_MONOTONIC, &start);
  int left = timeout_ms;
  for (;;) {
    pollfd p{pidfd_.get(), POLLIN, 0};
    const int rc = poll(&p, 1, left);
    if (rc >= 0 || errno != EINTR) break;
    if (timeout_ms < 0) continue;
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const auto passed =
        (now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000;
    left = std::max(0, timeout_ms - static_cast<int>(passed));
  }
  return exit_status();
}

void ChildProcess::signal(int number) {
  if (status_ || pid_ <= 0) return;
  syscall(SYS_pidfd_send_signal, pidfd_.get(), number, nullptr, 0);
}

ExitStatus ChildProcess::kill() {
  if (!exit_status()) {
    signal(SIGKILL);
    status_ = reap(pid_, 0);
  }
  return *status_;
}

Ready wait_any(const std::vector<ChildProcess*>& children, const std::vector<int>& fds,
               int timeout_ms) {
  // Children that were reaped have a readable pidfd too, so they are reported again.
  std::vector<pollfd> polls;
  for (ChildProcess* child : children) {
    polls.push_back({child == nullptr ? -1 : child->pidfd(), POLLIN, 0});
  }
  for (const int fd : fds) polls.push_back({fd, POLLIN, 0});
  Ready ready;
  if (poll(polls.data(), polls.size(), timeout_ms) <= 0) return ready;
  for (size_t i = 0; i < polls.size(); ++i) {
    if (polls[i].revents == 0) continue;
    if (i < children.size()) {
      ready.exited.push_back(i);
    } else {
      ready.readable.push_back(polls[i].fd);
    }
  }
  return ready;
}

void die_with_parent(pid_t expected_parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  // The parent may have ended before the line above took effect.
  NETCL_CHECK(getppid() == expected_parent, ErrorCode::kTraining,
              "the process that started this worker (", expected_parent, ") has ended");
}

std::vector<std::string> LineReader::read_lines() {
  std::vector<std::string> lines;
  char buffer[4096];
  while (!at_end_) {
    pollfd p{fd_, POLLIN, 0};
    if (poll(&p, 1, 0) <= 0) break;
    const ssize_t n = read(fd_, buffer, sizeof(buffer));
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    NETCL_CHECK(n >= 0, ErrorCode::kTraining, "cannot read from a worker: ", strerror(errno));
    if (n == 0) {
      at_end_ = true;
      if (!partial_.empty()) lines.push_back(std::exchange(partial_, ""));
      break;
    }
    partial_.append(buffer, static_cast<size_t>(n));
    size_t start = 0;
    for (size_t end = 0; (end = partial_.find('\n', start)) != std::string::npos; start = end + 1) {
      lines.push_back(partial_.substr(start, end - start));
    }
    partial_.erase(0, start);
    NETCL_CHECK(partial_.size() <= max_line_bytes_, ErrorCode::kTraining,
                "a worker sent a line of more than ", max_line_bytes_, " bytes");
  }
  return lines;
}

void write_line(int fd, std::string_view line) {
  std::string bytes(line);
  bytes += '\n';
  // A reader that is gone must be an error here, not a signal that kills the process.
  sigset_t pipe_signal, previous;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &previous);
  size_t done = 0;
  int error = 0;
  while (done < bytes.size() && error == 0) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n >= 0) {
      done += static_cast<size_t>(n);
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  if (error == EPIPE) {
    const timespec now{};
    sigtimedwait(&pipe_signal, nullptr, &now);
  }
  pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  NETCL_CHECK(error == 0, ErrorCode::kTraining,
              "cannot write to the other process: ", strerror(error));
}

}  // namespace netcl
