// netcl::Error, the one exception of the project, and the checks that throw it.
//
// A message says what was wrong, where, what was expected and what to do. Codes name the area
// whose owner must act; netcl-app turns them into exit codes (exit_code).
#ifndef NETCL_CORE_BASE_ERROR_H_
#define NETCL_CORE_BASE_ERROR_H_

#include <exception>
#include <sstream>
#include <string>
#include <utility>

namespace netcl {

enum class ErrorCode {
  kInternal,     // a bug in netcl or a plugin
  kUsage,        // command line, configuration, or arguments of a library call
  kDevice,       // no OpenCL, no device, or a device that failed
  kPlugin,       // a plugin that is missing, refused, or broke its contract
  kData,         // a data set that cannot be read
  kTraining,     // not a number, diverged, or a worker lost
  kCheckpoint,   // a checkpoint or run directory that cannot be read or written
  kInterrupted,  // the user asked to stop
};

// Exit code of netcl-app for an error: 1, 2, 3, 4, 5, 6, 7 or 130.
int exit_code(ErrorCode code);

class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}
  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorCode code_;
  std::string message_;
};

// Concatenates the arguments as an ostream prints them.
template <typename... Args>
std::string str_cat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

template <typename... Args>
[[noreturn]] void fail(ErrorCode code, const Args&... args) {
  throw Error(code, str_cat(args...));
}

}  // namespace netcl

// Throws netcl::Error{code, concatenation of the rest} unless the condition holds.
#define NETCL_CHECK(condition, code, ...)               \
  do {                                                  \
    if (!(condition)) netcl::fail((code), __VA_ARGS__); \
  } while (false)

#endif  // NETCL_CORE_BASE_ERROR_H_
