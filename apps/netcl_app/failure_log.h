// FailureLog: the failures that a run has survived, or died of.
// Threads: one.
#ifndef NETCL_APPS_NETCL_APP_FAILURE_LOG_H_
#define NETCL_APPS_NETCL_APP_FAILURE_LOG_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/json_doc.h"

namespace netcl::app {

enum class FailurePolicy { kStop, kContinue, kRestart };
// "stop", "continue" or "restart".
FailurePolicy failure_policy_from(const std::string& name);

struct Failure {
  uint32_t place = 0;
  std::string device;
  int64_t step = 0;       // the last one that the worker had made
  std::string what;       // without the worker's name
  std::string action;     // "stopped", "continued" or "restarted"; or kLeftOut
  double at_seconds = 0;  // when it was noticed
  double recovery_ms = -1;
};

class FailureLog {
 public:
  static constexpr int kMostInARow = 3;
  // The action where a worker was lost that the group had left out.
  static constexpr const char* kLeftOut = "left out";

  void add(Failure failure) { failures_.push_back(std::move(failure)); }
  // The failures that nothing has followed yet, as seen when the next generation begins at
  // `snapshot_step` (-1: from the start). False: one of the workers has failed kMostInARow times
  // without a snapshot in between; `last` is its last failure.
  bool worth_going_on(int64_t snapshot_step, Failure* last);
  // They are over since `now_seconds`.
  void recovered(double now_seconds, const std::string& action);
  // The longest of the latest recovery, in milliseconds.
  double latest_recovery_ms() const;
  Json json() const;

 private:
  struct Row {
    int count = 0;
    int64_t snapshot_step = -2;
  };
  std::vector<Failure> failures_;
  size_t judged_ = 0, recovered_ = 0;  // how many of them were
  double latest_ms_ = 0;
  std::map<uint32_t, Row> rows_;  // by place
};

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_FAILURE_LOG_H_
