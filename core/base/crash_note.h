// What a crash is told with: what this process was doing for which plugin, and whose kernel it ran.
//
// A plugin's code and, on processors, its kernels run in the process that uses them. When one ends
// it, a handler that watch_crashes() installs says which: by the call that the crashing thread is
// in, or by the file that the instruction lies in, which OpenCL drivers name after the kernel.
// Threads: any. Nothing here is freed: a signal handler may look at any time.
#ifndef NETCL_CORE_BASE_CRASH_NOTE_H_
#define NETCL_CORE_BASE_CRASH_NOTE_H_

#include <string>

namespace netcl {

// While it lives, this thread is in a call of a plugin: "planning softmax". Borrows both texts.
class CrashNote {
 public:
  CrashNote(const std::string& plugin, const std::string& doing);
  CrashNote(const CrashNote&) = delete;
  CrashNote& operator=(const CrashNote&) = delete;
  ~CrashNote();

  const char* plugin() const { return plugin_; }
  const char* doing() const { return doing_; }

 private:
  const char *const plugin_, *const doing_;
  const CrashNote* const outer_;
};

// A kernel of this name may run from now on; `words` say whose it is.
void note_kernel(const std::string& entry, const std::string& words);

struct CrashWatch {
  // Where a line goes: {"type": "crash", "text": ...}, of a worker, which then dies as it would
  // have. Negative: "error: ..." goes to standard error, and the process ends with `exit_code`,
  // unless the crash is nobody's.
  int status_fd = -1;
  int exit_code = 1;
  bool json = false;  // an error is a document on standard output, too
};

// Installs the handler for SIGSEGV, SIGBUS, SIGILL and SIGABRT; SIGFPE is left to OpenCL drivers,
// which make divisions by zero of it. A signal from outside of the process ends it at once: the
// handlers of compilers in OpenCL drivers would go on after the first one.
void watch_crashes(const CrashWatch& watch);
// Once more, after something else may have put its handlers in front; nothing if it never was.
void watch_crashes_again();

}  // namespace netcl

#endif  // NETCL_CORE_BASE_CRASH_NOTE_H_
