// Runs units in child processes: one child for as many as go well, a fresh one behind each that
// does not. A child that dies, ends early, hangs or prints is a finding of the check that it was
// at. Threads: one.
#ifndef NETCL_APPS_NETCL_APP_VERIFY_RUN_UNITS_H_
#define NETCL_APPS_NETCL_APP_VERIFY_RUN_UNITS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/netcl_app/verify/child.h"
#include "apps/netcl_app/verify/report.h"
#include "core/base/unique_fd.h"
#include "core/distributed/process.h"

namespace netcl::app::verify {

struct Setup {
  std::string directory;
  std::optional<DeviceInfo> device;
  int timeout_s = 60;  // without a sign of progress
  bool quick = false;
  std::function<void(const std::string& doing)> progress;  // or null
};

// Memory that stands for a child's standard output or error.
class Capture {
 public:
  Capture();  // Errors: kTraining
  int fd() const { return fd_.get(); }
  // What has been written since the last call, at most some lines of it.
  std::string take();

 private:
  UniqueFd fd_;
  int64_t taken_ = 0;
};

// One child, and what it says.
class WatchedChild {
 public:
  // `segment_fd`: of the ranks' control segment, or -1.
  WatchedChild(const Setup& setup, ChildJob job, int segment_fd = -1);

  ChildProcess& process() { return process_; }
  Capture& output() { return output_; }
  Capture& errors() { return errors_; }
  // The messages that have arrived; never waits.
  std::vector<Json> messages();
  bool at_end() const { return reader_.at_end(); }
  // Ends the child, if it runs, and removes what it has left half-written.
  void end();
  // "crashed (signal 11, SIGSEGV)", "ended the process with exit code 0"; with its last words.
  std::string how_it_ended();

 private:
  static SpawnOptions options_of(const Setup& setup, const ChildJob& job, int segment_fd,
                                 const Capture& output, const Capture& errors);

  Capture output_, errors_;  // before the process
  ChildProcess process_;
  LineReader reader_;
};

// Takes what a message says about checks into the report; false for messages of other kinds.
bool take_message(const Json& message, Report& report);

void run_units(const Setup& setup, const std::vector<Unit>& units, Report& report);

}  // namespace netcl::app::verify

#endif  // NETCL_APPS_NETCL_APP_VERIFY_RUN_UNITS_H_
