#include "apps/netcl_app/run_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"

namespace netcl::app {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxSuffix = 10000;

void make_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  NETCL_CHECK(!error, ErrorCode::kCheckpoint, path.string(),
              ": the directory cannot be made: ", error.message(), "; choose another with --out");
}

// Temporary files of a run that was killed. One run at a time writes to a directory.
void remove_leftovers(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string end = entry.path().extension().string();
    const bool number =
        end.size() > 4 && end.find_first_not_of("0123456789", 4) == std::string::npos;
    if (end.rfind(".tmp", 0) == 0 && number) found.push_back(entry.path());
  }
  for (const fs::path& path : found) fs::remove(path, error);
}

// Keeps letters, digits and "-_." of a name, so that it is one plain path component.
std::string plain_name(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || (c == '.' && !out.empty());
    out += plain ? c : '_';
  }
  return out.empty() ? "run" : out;
}

}  // namespace

RunDir::RunDir(fs::path path) : path_(std::move(path)) {
  make_directories(checkpoints());
  const fs::path file = path_ / "metrics.jsonl";
  metrics_.reset(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  NETCL_CHECK(metrics_.valid(), ErrorCode::kCheckpoint, file.string(),
              ": cannot be written: ", std::strerror(errno),
              "; choose another directory with --out");
  NETCL_CHECK(::flock(metrics_.get(), LOCK_EX | LOCK_NB) == 0, ErrorCode::kCheckpoint,
              path_.string(),
              ": another run writes to it now; choose another directory with --out");
}

RunDir RunDir::create(const fs::path& parent, const std::string& name, std::time_t now) {
  std::tm local{};
  ::localtime_r(&now, &local);
  std::array<char, 32> stamp{};
  std::strftime(stamp.data(), stamp.size(), "%Y%m%d-%H%M%S", &local);
  const fs::path runs = fs::absolute(parent) / "runs";
  make_directories(runs);
  const std::string base = plain_name(name) + "-" + stamp.data();
  for (int i = 1; i <= kMaxSuffix; ++i) {
    const fs::path path = runs / (i == 1 ? base : str_cat(base, '-', i));
    // mkdir decides alone: two runs that start in the same second get two directories.
    if (::mkdir(path.c_str(), 0777) == 0) return RunDir(path);
    NETCL_CHECK(errno == EEXIST, ErrorCode::kCheckpoint, path.string(),
                ": the directory cannot be made: ", std::strerror(errno),
                "; choose another with --out");
  }
  fail(ErrorCode::kCheckpoint, (runs / base).string(), ": ", kMaxSuffix,
       " runs of this name exist; choose another directory with --out");
}

RunDir RunDir::open(const fs::path& path, bool resume) {
  const fs::path full = fs::absolute(path).lexically_normal();
  make_directories(full);
  std::error_code ignored;
  NETCL_CHECK(
      resume || !fs::exists(full / "checkpoints" / "last.safetensors", ignored),
      ErrorCode::kCheckpoint, full.string(),
      ": holds a run already; choose another directory with --out, or go on with it: --resume ",
      full.string());
  RunDir out(full);
  remove_leftovers(full);
  remove_leftovers(out.checkpoints());
  // A run that ended before its first checkpoint left nothing to go on with: it is begun anew.
  if (!resume && ::ftruncate(out.metrics_.get(), 0) != 0 && errno != EINVAL) {
    fail(ErrorCode::kCheckpoint, (full / "metrics.jsonl").string(),
         ": cannot be emptied: ", std::strerror(errno));
  }
  return out;
}

void RunDir::write_config(const Json& config) const {
  write_file_atomic(path_ / "config.json", config.dump(2) + "\n", ErrorCode::kCheckpoint);
}

void RunDir::write_environment(const Json& environment) const {
  write_file_atomic(path_ / "environment.json", environment.dump(2) + "\n", ErrorCode::kCheckpoint);
}

void RunDir::append_metrics(const Json& metrics) {
  const fs::path file = path_ / "metrics.jsonl";
  const std::string line = metrics.dump() + "\n";
  struct stat before {};
  const bool sized = ::fstat(metrics_.get(), &before) == 0;
  size_t written = 0;
  while (written < line.size()) {
    const ssize_t n = ::write(metrics_.get(), line.data() + written, line.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n > 0) {
      written += static_cast<size_t>(n);
      continue;
    }
    const int reason = errno;
    // Half a line would spoil the file for its readers; it is cut off, if that works.
    if (sized && written > 0 && ::ftruncate(metrics_.get(), before.st_size) != 0) written = 0;
    fail(ErrorCode::kCheckpoint, file.string(), ": cannot be written: ", std::strerror(reason),
         reason == ENOSPC ? "; free some space, then go on with --resume" : "");
  }
}

}  // namespace netcl::app
