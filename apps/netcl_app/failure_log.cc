#include "apps/netcl_app/failure_log.h"

#include <algorithm>
#include <cmath>

namespace netcl::app {

FailurePolicy failure_policy_from(const std::string& name) {
  if (name == "stop") return FailurePolicy::kStop;
  if (name == "continue") return FailurePolicy::kContinue;
  NETCL_CHECK(name == "restart", ErrorCode::kUsage, "--on-failure ", name,
              ": expected stop, continue or restart");
  return FailurePolicy::kRestart;
}

bool FailureLog::worth_going_on(int64_t snapshot_step, Failure* last) {
  bool out = true;
  for (; judged_ < failures_.size(); ++judged_) {
    Row& row = rows_[failures_[judged_].place];
    if (row.snapshot_step != snapshot_step) row = {0, snapshot_step};
    if (++row.count < kMostInARow) continue;
    *last = failures_[judged_];
    out = false;
  }
  return out;
}

void FailureLog::recovered(double now_seconds, const std::string& action) {
  latest_ms_ = 0;
  for (; recovered_ < failures_.size(); ++recovered_) {
    Failure& failure = failures_[recovered_];
    if (failure.action == kLeftOut) continue;  // nothing had to recover
    failure.action = action;
    failure.recovery_ms = (now_seconds - failure.at_seconds) * 1e3;
    latest_ms_ = std::max(latest_ms_, failure.recovery_ms);
  }
}

double FailureLog::latest_recovery_ms() const { return latest_ms_; }

Json FailureLog::json() const {
  Json out = Json::array();
  for (const Failure& failure : failures_) {
    Json each = {{"rank", failure.place}, {"device", failure.device}, {"step", failure.step},
                 {"what", failure.what},  {"action", failure.action}, {"recovery_ms", nullptr}};
    if (failure.recovery_ms >= 0) each["recovery_ms"] = std::round(failure.recovery_ms * 10) / 10;
    out.push_back(std::move(each));
  }
  return out;
}

}  // namespace netcl::app
