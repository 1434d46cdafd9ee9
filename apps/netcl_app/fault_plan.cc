#include "apps/netcl_app/fault_plan.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <thread>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/cl/opencl.h"

namespace netcl::app {

namespace {

constexpr int kExitCode = 7;
constexpr const char* kSlowPoint = "computed";
constexpr const char* kPoints[] = {"start",    "setup",    "group",   "prepared", "begin",
                                   "computed", "reducing", "updated", "evaluate", "checkpoint",
                                   "snapshot", "end",      "parked"};
constexpr const char* kActions[] = {"kill", "stop", "exit", "device", "nospace", "flip"};

double number(const std::string& word, const std::string& value) {
  char* end = nullptr;
  const double out = std::strtod(value.c_str(), &end);
  NETCL_CHECK(!value.empty() && *end == '\0' && out >= 0, ErrorCode::kUsage, "NETCL_FAULTS: ", word,
              ": expected a number");
  return out;
}

template <size_t N>
void check_one_of(const char* const (&known)[N], const std::string& word,
                  const std::string& value) {
  const std::vector<std::string> names(std::begin(known), std::end(known));
  NETCL_CHECK(std::find(names.begin(), names.end(), value) != names.end(), ErrorCode::kUsage,
              "NETCL_FAULTS: ", word, ": expected one of ", join(names, ", "));
}

// A call that the driver refuses: no context.
void failing_call() {
  with_cl_errors("a step, as NETCL_FAULTS wants",
                 [] { const cl::Buffer buffer(cl::Context(), CL_MEM_READ_WRITE, 4); });
}

}  // namespace

FaultPlan::Rule FaultPlan::parse(const std::string& text, uint32_t rank, bool* mine) {
  Rule rule;
  *mine = true;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (key == "rank") {
      *mine = number(word, value) == static_cast<double>(rank);
    } else if (key == "step") {
      rule.step = static_cast<int64_t>(number(word, value));
    } else if (key == "after") {
      rule.after = static_cast<int64_t>(number(word, value));
    } else if (key == "at") {
      check_one_of(kPoints, word, value);
      rule.point = value;
    } else if (key == "slow") {
      rule.slow_microseconds = number(word, value);
    } else if (key == "hold") {
      rule.hold_microseconds = number(word, value);
    } else if (key == "ranks") {
      rule.ranks = static_cast<uint32_t>(number(word, value));
    } else if (key == "do") {
      check_one_of(kActions, word, value);
      rule.action = value;
    } else if (word == "every") {
      rule.every = true;
    } else {
      fail(ErrorCode::kUsage, "NETCL_FAULTS: ", word,
           ": expected rank=, step=, after=, at=, do=, every, slow=, hold= or ranks=");
    }
  }
  return rule;
}

FaultPlan::FaultPlan(uint32_t rank, const std::string& text) {
  uint32_t index = 0;
  for (const std::string& part : split(text, ';')) {
    bool mine = true;
    Rule rule = parse(part, rank, &mine);
    rule.index = index++;
    const bool slows = rule.slow_microseconds + rule.hold_microseconds > 0;
    if (mine && (slows || !rule.action.empty())) rules_.push_back(rule);
  }
}

void FaultPlan::set_action(const std::string& name, std::function<void()> action) {
  actions_.emplace_back(name, std::move(action));
}

void FaultPlan::at(const std::string& point, int64_t step, int64_t rows) {
  for (Rule& rule : rules_) {
    if (rule.slow_microseconds + rule.hold_microseconds > 0) {
      if (point != kSlowPoint || step < rule.step) continue;
      if (rule.ranks != 0 && rule.ranks != n_ranks_) continue;
      std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(
          rule.slow_microseconds * static_cast<double>(rows) + rule.hold_microseconds));
    } else if (point == rule.point && (rule.step < 0 || step == rule.step) && step > rule.after) {
      act(rule);
    }
  }
}

void FaultPlan::act(Rule& rule) {
  if (!rule.every) {
    if (rule.done || (once_ && !once_(rule.index))) return;
    rule.done = true;
  }
  if (rule.action == "kill") ::kill(::getpid(), SIGKILL);
  if (rule.action == "stop") ::kill(::getpid(), SIGSTOP);
  if (rule.action == "exit") ::_exit(kExitCode);
  if (rule.action == "device") failing_call();
  for (const auto& [name, action] : actions_) {
    if (name == rule.action) action();
  }
}

}  // namespace netcl::app
