// FaultPlan: what a test wants to go wrong in a worker, from NETCL_FAULTS.
//
// Rules are separated by ';', a rule is words KEY=VALUE separated by spaces:
//   rank=N     which worker (by default every one)
//   at=POINT   where; the points are those that the training loop names
//   (core/distributed/trainer.h) step=N     in which step (by default the first that comes by)
//   do=ACTION  kill (SIGKILL), stop (SIGSTOP), exit (code 7), device (an OpenCL error)
//   slow=N     instead of at and do: sleeps N microseconds a sample, from `step` on
// Example: NETCL_FAULTS="rank=1 at=computed step=5 do=kill; rank=0 slow=200"
// Threads: one.
#ifndef NETCL_APPS_NETCL_APP_FAULT_PLAN_H_
#define NETCL_APPS_NETCL_APP_FAULT_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

namespace netcl::app {

class FaultPlan {
 public:
  // Keeps the rules of `rank`. Errors: kUsage, naming the word that is wrong.
  FaultPlan(uint32_t rank, const std::string& text);

  bool empty() const { return rules_.empty(); }
  // Does what the rules say for this point. Errors: kDevice, where a rule wants it.
  void at(const std::string& point, int64_t step, int64_t rows) const;

 private:
  struct Rule {
    std::string point, action;
    int64_t step = -1;             // -1: any
    double slow_microseconds = 0;  // a sample
  };
  static void act(const Rule& rule, int64_t step);

  std::vector<Rule> rules_;
};

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_FAULT_PLAN_H_
