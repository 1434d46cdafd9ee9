// The directory of a training run: config.json, metrics.jsonl, environment.json, checkpoints/.
//
// JSON documents are written by temporary file, fsync and rename; metrics are appended a line at a
// time. Threads: one writer.
#ifndef NETCL_APPS_NETCL_APP_RUN_DIR_H_
#define NETCL_APPS_NETCL_APP_RUN_DIR_H_

#include <ctime>
#include <filesystem>
#include <string>

#include "core/base/json_doc.h"
#include "core/base/unique_fd.h"

namespace netcl::app {

class RunDir {
 public:
  // Creates runs/<name>-<YYYYmmdd-HHMMSS> (local time) under `parent`, with "-2", "-3", ... if it
  // is taken. Errors: kCheckpoint, naming the path.
  static RunDir create(const std::filesystem::path& parent, const std::string& name,
                       std::time_t now);
  // Uses `path` (--out), which is made if it does not exist. Errors: kCheckpoint; also if it holds
  // a run already, unless `resume`; then temporary files of a run that was killed are removed.
  static RunDir open(const std::filesystem::path& path, bool resume = false);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }  // exists

  // Replace config.json (the resolved configuration) and environment.json.
  // Errors: kCheckpoint, naming the path; the old file stays.
  void write_config(const Json& config) const;
  void write_environment(const Json& environment) const;

  // Appends one object as a line of metrics.jsonl; it is in the file when the call returns.
  // Errors: kCheckpoint for a disk that is full; the file then ends with its last whole line.
  void append_metrics(const Json& metrics);

 private:
  explicit RunDir(std::filesystem::path path);

  std::filesystem::path path_;
  UniqueFd metrics_;
};

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_RUN_DIR_H_
