// FaultPlan: what a test wants to go wrong in a worker, from NETCL_FAULTS.
//
// Rules are separated by ';', a rule is words separated by spaces:
//   rank=N     which worker, by the rank that it had when the run began (by default every one)
//   at=POINT   where: start, setup, group, prepared, begin, computed, reducing (posted, not
//              complete), updated, evaluate, checkpoint, snapshot (half written), end, parked
//              (waiting for the next generation)
//   step=N     in which step (by default the first that comes by); after=N: the first after it
//   do=ACTION  kill (SIGKILL), stop (SIGSTOP), exit (code 7), device (an OpenCL call that fails),
//              nospace (the next checkpoint goes to a full device), flip (a bit of a parameter)
//   every      each time; without it a rule comes true once in a run, whoever takes the place of
//              the worker (where the run survives nothing: once in a worker)
//   slow=N     instead of at and do: sleeps N microseconds a sample, from `step` on
//   hold=N     the same, N microseconds a step, with samples or without
//   ranks=N    slow and hold: while the group has N ranks
// Example: NETCL_FAULTS="rank=1 at=computed step=5 do=kill; rank=0 slow=200"
// Threads: one.
#ifndef NETCL_APPS_NETCL_APP_FAULT_PLAN_H_
#define NETCL_APPS_NETCL_APP_FAULT_PLAN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace netcl::app {

// The names of the points.
struct FaultPoints {
  static constexpr const char* kStart = "start";
  static constexpr const char* kSetUp = "setup";
  static constexpr const char* kGroup = "group";
  static constexpr const char* kPrepared = "prepared";
  static constexpr const char* kBegin =
      "begin";  // this and kUpdated, kComputed, kEvaluate: Trainer
  static constexpr const char* kReducing = "reducing";
  static constexpr const char* kCheckpoint = "checkpoint";
  static constexpr const char* kSnapshot = "snapshot";
  static constexpr const char* kEnd = "end";
  static constexpr const char* kParked = "parked";
};

class FaultPlan {
 public:
  // Keeps the rules of `rank`. Errors: kUsage, naming the word that is wrong.
  FaultPlan(uint32_t rank, const std::string& text);

  bool empty() const { return rules_.empty(); }
  // Whether rule `index` (below 64) may come true; by default once for this object.
  void set_once(std::function<bool(uint32_t index)> once) { once_ = std::move(once); }
  // What do=nospace and do=flip call.
  void set_action(const std::string& name, std::function<void()> action);
  void set_ranks(uint32_t n_ranks) { n_ranks_ = n_ranks; }
  // Does what the rules say for this point. Errors: kDevice, where a rule wants it.
  void at(const std::string& point, int64_t step = 0, int64_t rows = 0);

 private:
  struct Rule {
    uint32_t index = 0;  // among all rules of the text
    std::string point, action;
    int64_t step = -1;  // -1: any
    int64_t after = -1;
    double slow_microseconds = 0, hold_microseconds = 0;  // a sample, a step
    uint32_t ranks = 0;                                   // 0: any
    bool every = false, done = false;
  };
  static Rule parse(const std::string& text, uint32_t rank, bool* mine);
  void act(Rule& rule);

  uint32_t n_ranks_ = 1;
  std::vector<Rule> rules_;
  std::function<bool(uint32_t)> once_;
  std::vector<std::pair<std::string, std::function<void()>>> actions_;
};

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_FAULT_PLAN_H_
