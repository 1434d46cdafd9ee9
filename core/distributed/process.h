// Child processes: start by exec, watch through pidfds, end for certain.
//
// Children are started with posix_spawn, never by forking a process that has used OpenCL. A child
// inherits standard input, output and error and the descriptors it is given, and nothing else.
//
// Ownership: a ChildProcess owns its child: the destructor kills and reaps it.
// Threads: one thread for one object. A child that calls die_with_parent ends with the THREAD that
// started it: start children from a thread that lives as long as they may.
#ifndef NETCL_CORE_DISTRIBUTED_PROCESS_H_
#define NETCL_CORE_DISTRIBUTED_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/unique_fd.h"

namespace netcl {

struct InheritedFd {
  int parent_fd;  // stays open in the parent
  int child_fd;   // the number that the child sees; 0 to 2 replace its standard descriptors
};

struct SpawnOptions {
  std::vector<std::string> argv;  // argv[0] is a path
  // The whole environment, "NAME=value" (environment::with_changes makes it).
  std::vector<std::string> environment;
  std::vector<InheritedFd> descriptors;
  // If not negative: a pipe is made, whose writing end is this descriptor of the child and whose
  // reading end is ChildProcess::status_fd.
  int status_fd = -1;
  // Away from the terminal's signals, so that Ctrl-C reaches the parent alone, which then decides.
  bool own_process_group = true;
};

// How a process ended.
struct ExitStatus {
  bool by_signal = false;
  int value = 0;  // exit code or signal

  bool success() const { return !by_signal && value == 0; }
  // "exit code 3", "killed by signal 9 (SIGKILL)"
  std::string describe() const;
};

class ChildProcess {
 public:
  // Errors: kInternal for contradictory options; kTraining when the system cannot start it.
  explicit ChildProcess(const SpawnOptions& options);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }          // readable once the child has ended
  int status_fd() const { return status_fd_.get(); }  // -1 without a status pipe
  bool running() { return !exit_status(); }
  // True while a signal (SIGSTOP, SIGTSTP) holds the child.
  bool stopped() const;

  // How the child ended, if it has; reaps it.
  std::optional<ExitStatus> exit_status();
  // Waits until it ends, at most `timeout_ms` (negative: without limit).
  std::optional<ExitStatus> wait(int timeout_ms);
  // Sends a signal; nothing happens if the child has ended.
  void signal(int number);
  // Ends the child now, if it runs, and reaps it.
  ExitStatus kill();

 private:
  pid_t pid_ = -1;
  UniqueFd pidfd_, status_fd_;
  std::optional<ExitStatus> status_;
};

// What wait_any saw.
struct Ready {
  std::vector<size_t> exited;  // indices into `children`; each is reported as long as it is listed
  std::vector<int> readable;   // descriptors with bytes, at their end, or broken
  bool timed_out() const { return exited.empty() && readable.empty(); }
};

// Waits until a child ends or a descriptor can be read, at most `timeout_ms` (negative: without
// limit). Null children and negative descriptors are skipped. A signal that arrives ends the wait
// early, with nothing ready.
Ready wait_any(const std::vector<ChildProcess*>& children, const std::vector<int>& fds,
               int timeout_ms);

// For a child, first thing in main: the kernel kills it when the thread that started it ends.
// Errors: kTraining if the parent is gone already.
void die_with_parent(pid_t expected_parent);

// Splits what comes through a pipe into lines. Does not own the descriptor.
class LineReader {
 public:
  // Units: max_line_bytes; a longer line is an error, since the writer must be broken.
  explicit LineReader(int fd, size_t max_line_bytes = size_t{1} << 20)
      : fd_(fd), max_line_bytes_(max_line_bytes) {}
  // The complete lines that have arrived, without '\n'; never blocks. At the end of the stream an
  // unfinished last line counts as a line. Errors: kTraining.
  std::vector<std::string> read_lines();
  bool at_end() const { return at_end_; }

 private:
  int fd_;
  size_t max_line_bytes_;
  std::string partial_;
  bool at_end_ = false;
};

// Writes the line and '\n' whole. Errors: kTraining (the reader is gone).
void write_line(int fd, std::string_view line);

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_PROCESS_H_
