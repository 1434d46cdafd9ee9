// What a worker tells the supervisor on its status descriptor: JSON lines, and what went wrong.
#ifndef NETCL_APPS_NETCL_APP_WORKER_STATUS_H_
#define NETCL_APPS_NETCL_APP_WORKER_STATUS_H_

#include <functional>
#include <optional>
#include <string>

#include "apps/netcl_app/job.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/collective/segment.h"

namespace netcl::app {

// Where a rank's messages go.
using StatusSink = std::function<void(const Json& message)>;

// To the supervisor. Threads: one at a time.
void send_status(const Json& message);
// Warnings as messages of type "note".
Logger status_logger(StatusSink say);

struct Problem {
  ErrorCode code = ErrorCode::kInternal;
  std::string text;
};

// Runs `body`; returns what it throws.
std::optional<Problem> problem_of(const std::function<void()>& body);

// What is said of a problem. `type`: "error", after which the worker ends, or "failed", after which
// it parks. `first`: no other rank's failure explains it.
Json problem_message(const char* type, const Problem& problem, bool first);
// Says what happened. The first to fail says why; ranks that fail because of it have nothing to
// add.
void say_problem(const char* type, Segment* segment, const Job& job, const Problem& problem);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_WORKER_STATUS_H_
