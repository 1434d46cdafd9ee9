#include "apps/netcl_app/fault_plan.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <sstream>
#include <thread>

#include "core/base/error.h"
#include "core/base/text.h"

namespace netcl::app {

namespace {

constexpr int kExitCode = 7;
constexpr const char* kSlowPoint = "computed";

double number(const std::string& word, const std::string& value) {
  char* end = nullptr;
  const double out = std::strtod(value.c_str(), &end);
  NETCL_CHECK(!value.empty() && *end == '\0' && out >= 0, ErrorCode::kUsage, "NETCL_FAULTS: ", word,
              ": expected a number");
  return out;
}

}  // namespace

FaultPlan::FaultPlan(uint32_t rank, const std::string& text) {
  for (const std::string& part : split(text, ';')) {
    Rule rule;
    bool mine = true;
    std::istringstream words(part);
    for (std::string word; words >> word;) {
      const size_t equals = word.find('=');
      const std::string key = word.substr(0, equals);
      const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
      if (key == "rank") {
        mine = number(word, value) == static_cast<double>(rank);
      } else if (key == "step") {
        rule.step = static_cast<int64_t>(number(word, value));
      } else if (key == "at") {
        rule.point = value;
      } else if (key == "slow") {
        rule.slow_microseconds = number(word, value);
      } else if (key == "do" &&
                 (value == "kill" || value == "stop" || value == "exit" || value == "device")) {
        rule.action = value;
      } else {
        fail(ErrorCode::kUsage, "NETCL_FAULTS: ", word,
             ": expected rank=, step=, at=, slow=, or do=kill, stop, exit or device");
      }
    }
    const bool slow = rule.slow_microseconds > 0;
    if (mine && (slow || !rule.action.empty())) rules_.push_back(rule);
  }
}

void FaultPlan::at(const std::string& point, int64_t step, int64_t rows) const {
  for (const Rule& rule : rules_) {
    if (rule.slow_microseconds > 0) {
      if (point != kSlowPoint || step < rule.step) continue;
      std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(
          rule.slow_microseconds * static_cast<double>(rows)));
    } else if (point == rule.point && (rule.step < 0 || step == rule.step)) {
      act(rule, step);
    }
  }
}

void FaultPlan::act(const Rule& rule, int64_t step) {
  if (rule.action == "kill") ::kill(::getpid(), SIGKILL);
  if (rule.action == "stop") ::kill(::getpid(), SIGSTOP);
  if (rule.action == "exit") ::_exit(kExitCode);
  if (rule.action == "device") {
    fail(ErrorCode::kDevice, "an OpenCL call failed at \"", rule.point, "\" of step ", step,
         ", as NETCL_FAULTS wants");
  }
}

}  // namespace netcl::app
