// The tuner's hold on its child: asks, waits with a limit, and starts another one after a failure.
// Threads: one.
#ifndef NETCL_APPS_NETCL_APP_TUNE_CHILD_PROCESS_H_
#define NETCL_APPS_NETCL_APP_TUNE_CHILD_PROCESS_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json_doc.h"
#include "core/base/unique_fd.h"
#include "core/cl/device_info.h"
#include "core/distributed/process.h"

namespace netcl::app {

struct TuneAnswer {
  Json json;          // null if there is none
  std::string ended;  // why there is none: "killed by signal 11 (SIGSEGV)", "no answer within 30 s"
  bool stopped = false;  // the user wants no answer any more
};

class TuneChild {
 public:
  // `open`: the first request. `stop` is asked while waiting.
  TuneChild(DeviceInfo device, Json open, double timeout_seconds, std::function<bool()> stop);

  // Starts a child if there is none; `context` is asked first then, such as the question. A child
  // that does not answer in time is ended. Errors: kDevice if a new child cannot do its first
  // requests.
  TuneAnswer ask(const Json& request, const Json& context = nullptr);

 private:
  void start(const Json& context);
  TuneAnswer exchange(const Json& request);
  TuneAnswer gone(const std::string& why);

  const DeviceInfo device_;
  const Json open_;
  const double timeout_seconds_;
  const std::function<bool()> stop_;
  std::unique_ptr<ChildProcess> process_;
  std::unique_ptr<LineReader> reader_;
  std::vector<std::string> lines_;
  UniqueFd requests_;
};

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_TUNE_CHILD_PROCESS_H_
