#include "apps/netcl_app/verify/run_units.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "core/base/clock.h"
#include "core/base/environment.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/text.h"
#include "core/cl/icd.h"

namespace netcl::app::verify {

namespace {

constexpr size_t kShownBytes = 200;  // of what a plugin prints

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.find_last_of('\n') + 1);
}

// What one child did with a run of units that begins at `first`.
class UnitsOfChild {
 public:
  UnitsOfChild(const Setup& setup, const std::vector<Unit>& units, size_t first, Report& report)
      : setup_(setup), units_(units), first_(first), report_(report) {}

  // Returns the unit to go on with.
  size_t run() {
    ChildJob job{::getpid(), setup_.directory, std::nullopt, setup_.quick, {}, nullptr};
    size_t n = 0;
    while (first_ + n < units_.size() && (n == 0 || !units_[first_ + n].fresh)) {
      const Unit& unit = units_[first_ + n++];
      job.units.emplace_back(unit.family, unit.argument);
      if (unit.on_device) job.device = setup_.device;
      if (unit.fresh) break;
    }
    WatchedChild child(setup_, job);
    watch(child);
    finish(child);
    return done_ ? first_ + n : first_ + unit_ + 1;
  }

 private:
  void watch(WatchedChild& child) {
    for (double progress = now_seconds(); !child.at_end();) {
      const double left = progress + setup_.timeout_s - now_seconds();
      if (left <= 0) {
        timed_out_ = true;
        child.end();
        return;
      }
      wait_any({}, {child.process().status_fd()}, static_cast<int>(left * 1000) + 1);
      for (const Json& message : child.messages()) {
        progress = now_seconds();
        take(message, child);
      }
    }
  }

  void take(const Json& message, WatchedChild& child) {
    if (message.contains("error"))
      fail(ErrorCode::kInternal,
           "a check could not be started: ", message.at("error").get<std::string>());
    if (take_message(message, report_)) return;
    if (message.contains("unit")) {
      unit_ = message.at("unit").get<size_t>();
      check_ = unit().checks.front();
      doing_ = "starting";
    } else if (message.contains("at")) {
      check_ = message.at("at").get<std::string>();
      doing_ = message.at("doing").get<std::string>();
      if (setup_.progress) setup_.progress(doing_);
    } else if (message.contains("end")) {
      look_at_prints(child);
    } else if (message.contains("done")) {
      done_ = true;
    }
  }

  void finish(WatchedChild& child) {
    if (timed_out_) {
      report_.failed(check_, str_cat("NPL-11: timed out: no sign of progress for ",
                                     setup_.timeout_s, " s, while ", doing_));
    } else if (!child.process().wait(setup_.timeout_s * 1000)) {
      child.end();
      report_.failed(check_, str_cat("NPL-11: timed out: the process does not end; ",
                                     setup_.timeout_s, " s after the last check"));
    } else if (const ExitStatus status = *child.process().exit_status(); !done_) {
      report_.failed(check_, "NPL-11: " + child.how_it_ended() + " while " + doing_);
    } else if (!status.success()) {
      report_.failed(
          check_, "NPL-11: " + child.how_it_ended() + " after all checks, while the process ended");
    }
    look_at_prints(child);
    if (units_[first_].fresh && done_) report_.ran(check::kQuiet);
    if (!done_) child.end();
  }

  // Standard error belongs to the OpenCL drivers, too, where they are open.
  void look_at_prints(WatchedChild& child) {
    const std::string printed = child.output().take();
    if (!printed.empty()) told_prints("standard output", printed);
    if (unit().on_device || timed_out_ || !done_) return;
    const std::string errors = child.errors().take();
    if (!errors.empty()) told_prints("standard error", errors);
  }

  void told_prints(const std::string& where, const std::string& text) {
    report_.failed(check::kQuiet, "it prints to " + where + " (" + unit().family + "): \"" +
                                      last_line(text) +
                                      "\"; hand texts to the host's log() instead");
  }

  const Unit& unit() const { return units_[first_ + unit_]; }

  const Setup& setup_;
  const std::vector<Unit>& units_;
  const size_t first_;
  Report& report_;
  size_t unit_ = 0;
  std::string check_ = check::kOpens, doing_ = "starting";
  bool done_ = false, timed_out_ = false;
};

}  // namespace

Capture::Capture() : fd_(::memfd_create("netcl-verify", MFD_CLOEXEC)) {
  NETCL_CHECK(fd_.valid(), ErrorCode::kTraining, "no memory for a child's output");
}

std::string Capture::take() {
  struct stat info {};
  if (::fstat(fd(), &info) != 0 || info.st_size <= taken_) return "";
  const auto from = std::max<int64_t>(taken_, info.st_size - static_cast<int64_t>(kShownBytes));
  taken_ = info.st_size;
  std::string out(static_cast<size_t>(info.st_size - from), '\0');
  const ssize_t n = ::pread(fd(), out.data(), out.size(), from);
  out.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return out;
}

SpawnOptions WatchedChild::options_of(const Setup& setup, const ChildJob& job, int segment_fd,
                                      const Capture& output, const Capture& errors) {
  SpawnOptions out;
  out.argv = {std::filesystem::canonical("/proc/self/exe").string(), "verify-child",
              to_json(job).dump()};
  out.environment = environment::with_changes(job.device ? only_driver(setup.device->icd)
                                                         : std::vector<std::string>());
  out.descriptors = {{output.fd(), STDOUT_FILENO}, {errors.fd(), STDERR_FILENO}};
  if (segment_fd >= 0) out.descriptors.push_back({segment_fd, ChildFds::kSegment});
  out.status_fd = ChildFds::kStatus;
  return out;
}

WatchedChild::WatchedChild(const Setup& setup, ChildJob job, int segment_fd)
    : process_(options_of(setup, job, segment_fd, output_, errors_)),
      reader_(process_.status_fd()) {}

std::vector<Json> WatchedChild::messages() {
  std::vector<Json> out;
  for (const std::string& line : reader_.read_lines()) {
    Json message = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (message.is_object()) out.push_back(std::move(message));
  }
  return out;
}

void WatchedChild::end() {
  process_.kill();
  remove_temporary_files(environment::cache_dir(), process_.pid());
}

std::string WatchedChild::how_it_ended() {
  const std::optional<ExitStatus> status = process_.exit_status();
  if (!status) return "closed its status pipe";
  std::string out;
  if (status->by_signal) {
    const std::string words = status->describe();  // "killed by signal 11 (SIGSEGV)"
    const std::string number = words.substr(words.find("signal"));
    out = "crashed (" + number + ")";
  } else {
    out = "it ended the process, with " + status->describe() + ",";
  }
  const std::string words = last_line(errors_.take());
  return words.empty() ? out : out + " (\"" + words + "\")";
}

bool take_message(const Json& message, Report& report) {
  if (message.contains("failed")) {
    report.failed(message.at("failed").get<std::string>(), message.at("detail").get<std::string>());
  } else if (message.contains("ran")) {
    report.ran(message.at("ran").get<std::string>(), message.at("n").get<size_t>());
  } else if (message.contains("note")) {
    report.note(message.at("note").get<std::string>(), message.at("detail").get<std::string>());
  } else {
    return false;
  }
  return true;
}

void run_units(const Setup& setup, const std::vector<Unit>& units, Report& report) {
  for (size_t next = 0; next < units.size();) next = UnitsOfChild(setup, units, next, report).run();
}

}  // namespace netcl::app::verify
