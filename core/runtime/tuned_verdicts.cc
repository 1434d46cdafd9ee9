#include "core/runtime/tuned_verdicts.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "core/base/append.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/sha256.h"
#include "core/base/text.h"
#include "core/base/unique_fd.h"

namespace netcl {
namespace fs = std::filesystem;

namespace {

constexpr size_t kKeyDigits = 32, kMaxWhy = 500;
constexpr const char* kEndedItsProcess =
    "an earlier check of it ended the process; `netcl-app tune --again` tries it once more";
constexpr const char* kEndedTheMachine =
    "the machine went down while it was tried; `netcl-app tune --again` tries it once more";

// Another one after every start of the system; "" where there is none.
std::string start_of_system() {
  try {
    const std::string text = read_file("/proc/sys/kernel/random/boot_id", ErrorCode::kPlugin);
    return text.substr(0, text.find('\n'));
  } catch (const Error&) {
    return "";
  }
}

// A lock that goes with the process that holds it.
UniqueFd lock_file(const fs::path& file) {
  if (file.empty()) return UniqueFd();
  std::error_code ignored;
  fs::create_directories(file.parent_path(), ignored);
  UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd.valid()) return fd;
  while (::flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return UniqueFd();
  }
  return fd;
}

}  // namespace

TunedVerdicts::TunedVerdicts(fs::path file, Logger log)
    : file_(std::move(file)), log_(std::move(log)) {}

std::string TunedVerdicts::key(const std::string& text) {
  return sha256_hex(text).substr(0, kKeyDigits);
}

void TunedVerdicts::read() {
  read_ = true;
  const std::string start = start_of_system();
  std::ifstream in(file_, std::ios::binary);
  std::string line;
  while (std::getline(in, line)) {
    if (line.size() <= kKeyDigits + 1 || line[kKeyDigits] != ' ') continue;
    const std::string rest = line.substr(kKeyDigits + 1);
    TunedVerdict verdict;
    if (rest == "passed") {
      verdict.state = TunedVerdict::State::kPassed;
    } else if (rest == "begun") {
      verdict = {TunedVerdict::State::kBegun, kEndedItsProcess};
    } else if (rest.rfind("tried ", 0) == 0) {
      if (rest.substr(6) != start) verdict = {TunedVerdict::State::kBegun, kEndedTheMachine};
    } else if (rest.rfind("failed ", 0) == 0) {
      verdict = {TunedVerdict::State::kFailed, rest.substr(7)};
    } else if (rest != "open") {
      continue;
    }
    known_[line.substr(0, kKeyDigits)] = verdict;
  }
}

TunedVerdict TunedVerdicts::of(const std::string& key) {
  if (!read_) read();
  const auto found = known_.find(key);
  return found == known_.end() ? TunedVerdict() : found->second;
}

bool TunedVerdicts::keep(const std::string& key, TunedVerdict::State state,
                         const std::string& why) {
  known_[key] = {state, why};
  std::string line = key;
  switch (state) {
    case TunedVerdict::State::kNone:
      line += " open";
      break;
    case TunedVerdict::State::kBegun:
      line += " begun";
      break;
    case TunedVerdict::State::kPassed:
      line += " passed";
      break;
    case TunedVerdict::State::kFailed:
      line += " failed " + why.substr(0, kMaxWhy);
  }
  return append(std::move(line));
}

bool TunedVerdicts::keep_tried(const std::string& key) {
  known_[key] = {};
  return append(key + " tried " + start_of_system());
}

bool TunedVerdicts::append(std::string line) const {
  std::replace(line.begin(), line.end(), '\n', ' ');
  if (file_.empty()) return false;
  try {
    append_line(file_, line, ErrorCode::kPlugin);
    return true;
  } catch (const Error&) {
    return false;
  }
}

TunedVerdict TunedVerdicts::check_now(const std::string& key,
                                      const std::function<std::string()>& check) {
  const bool kept = keep(key, TunedVerdict::State::kBegun);
  if (!kept && !warned_) {
    warned_ = true;
    log_.warning(str_cat(
        file_.empty() ? "without a home directory" : file_.string() + " cannot be written, so",
        " outcomes of checks of tuned kernels are not kept; they are made at every start"));
  }
  std::string wrong;
  try {
    wrong = check();
  } catch (const std::exception& e) {
    wrong = e.what();
  }
  keep(key, wrong.empty() ? TunedVerdict::State::kPassed : TunedVerdict::State::kFailed, wrong);
  return known_[key];
}

TunedVerdict TunedVerdicts::decide(const std::string& key,
                                   const std::function<std::string()>& check) {
  using State = TunedVerdict::State;
  const State seen = of(key).state;
  if (seen == State::kPassed || seen == State::kFailed) return of(key);
  // What has begun may be going on in another process, which then holds the lock.
  const UniqueFd lock = lock_file(file_);
  if (lock.valid()) read();  // another process may have decided meanwhile
  if (const TunedVerdict known = of(key); known.state != State::kNone) return known;
  return check_now(key, check);
}

}  // namespace netcl
