// The supervisor: starts one worker a device, watches them, and turns what they say into a result.
// It opens no OpenCL. A worker that dies or fails ends the run with an error that names it.
#ifndef NETCL_APPS_NETCL_APP_SUPERVISOR_H_
#define NETCL_APPS_NETCL_APP_SUPERVISOR_H_

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/netcl_app/job.h"
#include "core/base/error.h"
#include "core/collective/segment.h"
#include "core/data/dataset.h"
#include "core/distributed/process.h"
#include "core/distributed/selectors.h"

namespace netcl::app {

// What became of a run. `error` set: it failed.
struct RunOutcome {
  std::vector<Json> done;  // each rank's last message, null where there is none
  std::vector<Json> ready;
  std::optional<Error> error;
};

// Keeps SIGINT and SIGTERM of this thread waiting until a Supervisor takes them.
void block_stop_signals();

class Supervisor {
 public:
  // Called for every message of a worker ("step", "epoch", "note", "ready").
  // What it throws as netcl::Error fails the run.
  using OnMessage = std::function<void(uint32_t rank, const Json& message)>;
  // Called once, as soon as the run is known to have failed; the survivors may still run.
  using OnFailure = std::function<void(const Error& error)>;

  // `job` holds what all ranks share; rank, device and label are filled in for each.
  Supervisor(std::vector<WorkerPlace> places, Job job, const Dataset& train, const Dataset* test,
             OnMessage on_message, OnFailure on_failure = nullptr);
  ~Supervisor();

  // Runs until every worker has ended. SIGINT and SIGTERM ask for an orderly stop; a second one, or
  // two seconds without success, ends the workers.
  RunOutcome run();

 private:
  struct Rank;
  std::vector<std::string> core_limits(const WorkerPlace& place) const;
  void start();
  void read_messages(Rank& rank);
  void handle_exit(Rank& rank);
  void handle_signal();
  void handle_message(Rank& rank, const Json& message);
  void check_deadlines();
  void check_stalls();
  void watch_steps();
  double stall_seconds() const;
  bool all_ready() const;
  bool has_checkpoint() const;
  void complete_outcome();
  void remove_temporaries() const;
  std::string who(const Rank& rank) const;
  std::string last_words(const Rank& rank) const;
  void fail_run(ErrorCode code, const std::string& text);
  void end_survivors();
  bool any_running() const;

  std::vector<WorkerPlace> places_;
  Job job_;
  const Dataset& train_;
  const Dataset* test_;
  OnMessage on_message_;
  OnFailure on_failure_;
  std::shared_ptr<Segment> segment_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  UniqueFd signals_;
  RunOutcome outcome_;
  double stop_deadline_ = 0, kill_deadline_ = 0;  // monotonic seconds; 0: none
  bool stop_twice_ = false;
  std::string second_hand_;  // what a rank said that failed because of another one
  // Stalls are counted from here at the earliest: the supervisor itself may have been held up.
  double awake_since_ = 0, last_look_ = 0;
  std::deque<double> step_seconds_;  // of rank 0's latest steps
  int64_t seen_step_ = 0;
  double seen_step_at_ = 0;
};

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_SUPERVISOR_H_
