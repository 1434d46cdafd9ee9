#include "apps/netcl_app/worker_status.h"

#include <exception>
#include <utility>

#include "core/cl/opencl.h"
#include "core/distributed/process.h"

namespace netcl::app {

void send_status(const Json& message) { write_line(WorkerFds::kStatus, message.dump()); }

Logger status_logger(StatusSink say) {
  return Logger([say = std::move(say)](LogLevel level, const std::string& text) {
    if (level >= LogLevel::kWarning) say({{"type", "note"}, {"text", text}});
  });
}

std::optional<Problem> problem_of(const std::function<void()>& body) {
  try {
    body();
    return std::nullopt;
  } catch (const Error& e) {
    return Problem{e.code(), e.message()};
  } catch (const cl::Error& e) {
    return Problem{ErrorCode::kDevice, str_cat(e.what(), ": ", cl_error_name(e.err()))};
  } catch (const std::exception& e) {
    return Problem{ErrorCode::kInternal, e.what()};
  }
}

Json problem_message(const char* type, const Problem& problem, bool first) {
  return {{"type", type},
          {"code", exit_code(problem.code)},
          {"message", problem.text},
          {"first", first}};
}

void say_problem(const char* type, Segment* segment, const Job& job, const Problem& problem) {
  const std::string who = str_cat("rank ", job.rank, " (", job.label, ")");
  const bool first = segment == nullptr || segment->abort(who + ": " + problem.text);
  send_status(problem_message(type, problem, first));
}

}  // namespace netcl::app
