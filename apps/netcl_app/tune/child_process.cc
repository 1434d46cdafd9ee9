#include "apps/netcl_app/tune/child_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "apps/netcl_app/tune/messages.h"
#include "core/base/clock.h"
#include "core/base/environment.h"
#include "core/cl/icd.h"

namespace netcl::app {

namespace {

constexpr int kStandardOutput = 1, kStandardError = 2;
constexpr int kEndMs = 2000;
constexpr double kLook = 0.2;  // seconds between looks at `stop`

}  // namespace

TuneChild::TuneChild(DeviceInfo device, Json open, double timeout_seconds,
                     std::function<bool()> stop)
    : device_(std::move(device)),
      open_(std::move(open)),
      timeout_seconds_(timeout_seconds),
      stop_(std::move(stop)) {}

void TuneChild::start(const Json& context) {
  int pipe[2];
  NETCL_CHECK(::pipe2(pipe, O_CLOEXEC) == 0, ErrorCode::kDevice,
              "a pipe to the tuning process failed: ", std::strerror(errno));
  const UniqueFd reading(pipe[0]);
  requests_.reset(pipe[1]);
  SpawnOptions options;
  options.argv = {std::filesystem::canonical("/proc/self/exe").string(), kTuneChild,
                  std::to_string(::getpid())};
  options.environment = environment::with_changes(only_driver(device_.icd));
  // Whatever a driver prints must not mix with the document on standard output.
  options.descriptors = {{reading.get(), TuneFds::kRequests}, {kStandardError, kStandardOutput}};
  options.status_fd = TuneFds::kAnswers;
  process_ = std::make_unique<ChildProcess>(options);
  reader_ = std::make_unique<LineReader>(process_->status_fd());
  lines_.clear();
  for (const Json& first : {open_, context}) {
    if (first.is_null()) continue;
    const TuneAnswer answer = exchange(first);
    if (answer.stopped) return;
    NETCL_CHECK(
        answer.json.is_object() && !answer.json.contains("error"), ErrorCode::kDevice,
        "the tuning process on ", device_.selector, " (", device_.name,
        "): ", answer.json.is_object() ? answer.json.at("error").get<std::string>() : answer.ended);
  }
}

TuneAnswer TuneChild::gone(const std::string& why) {
  process_.reset();
  reader_.reset();
  requests_.reset();
  return {nullptr, why, false};
}

TuneAnswer TuneChild::exchange(const Json& request) {
  try {
    write_line(requests_.get(), request.dump());
  } catch (const Error&) {  // it has ended; its status says how
  }
  const double deadline = now_seconds() + timeout_seconds_;
  while (lines_.empty()) {
    if (stop_()) {
      gone("");
      return {nullptr, "", true};
    }
    const double left = deadline - now_seconds();
    if (left <= 0) return gone(str_cat("no answer within ", timeout_seconds_, " s"));
    if (reader_->at_end()) {
      const auto status = process_->wait(kEndMs);
      return gone(status ? status->describe() : "it closed its end");
    }
    wait_any({}, {process_->status_fd()}, static_cast<int>(std::min(left, kLook) * 1000) + 1);
    for (std::string& line : reader_->read_lines()) lines_.push_back(std::move(line));
  }
  const Json answer = Json::parse(lines_.front(), nullptr, /*allow_exceptions=*/false);
  lines_.erase(lines_.begin());
  if (!answer.is_object()) return gone("an answer that is none");
  return {answer, "", false};
}

TuneAnswer TuneChild::ask(const Json& request, const Json& context) {
  if (process_ == nullptr) start(context);
  if (process_ == nullptr) return {nullptr, "", true};
  return exchange(request);
}

}  // namespace netcl::app
