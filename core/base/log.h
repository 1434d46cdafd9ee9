// Log lines. The core never prints: messages go to the sink that the program sets; without one
// they are dropped. Threads: any.
#ifndef NETCL_CORE_BASE_LOG_H_
#define NETCL_CORE_BASE_LOG_H_

#include <functional>
#include <string>

#include "core/base/error.h"

namespace netcl {

enum class LogLevel { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3 };

// Passed to whoever must log; copies share the sink.
class Logger {
 public:
  using Sink = std::function<void(LogLevel, const std::string&)>;
  Logger() = default;
  explicit Logger(Sink sink) : sink_(std::move(sink)) {}

  void log(LogLevel level, const std::string& text) const {
    if (sink_) sink_(level, text);
  }
  template <typename... Args>
  void debug(const Args&... args) const {
    if (sink_) log(LogLevel::kDebug, str_cat(args...));
  }
  template <typename... Args>
  void info(const Args&... args) const {
    if (sink_) log(LogLevel::kInfo, str_cat(args...));
  }
  template <typename... Args>
  void warning(const Args&... args) const {
    if (sink_) log(LogLevel::kWarning, str_cat(args...));
  }

 private:
  Sink sink_;
};

}  // namespace netcl

#endif  // NETCL_CORE_BASE_LOG_H_
