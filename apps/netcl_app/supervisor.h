// The supervisor: starts one worker a device, watches them, and turns what they say into a result.
// It opens no OpenCL.
//
// A worker that dies, stalls or has an error of its device ends the run with an error that names
// it, or, with --on-failure, begins a recovery: the segment is aborted, the survivors leave their
// waits, tear the group down and park, and once all have, the next generation begins: a fresh
// segment (nothing of the old group can reach it), ranks numbered anew, the state of the newest
// snapshot. Every other error ends the run. In the same way, without a failure, a group goes on
// without a worker that holds the others up, and takes it back (core/distributed/group_choice.h).
#ifndef NETCL_APPS_NETCL_APP_SUPERVISOR_H_
#define NETCL_APPS_NETCL_APP_SUPERVISOR_H_

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/netcl_app/failure_log.h"
#include "apps/netcl_app/job.h"
#include "apps/netcl_app/worker_process.h"
#include "core/base/error.h"
#include "core/collective/segment.h"
#include "core/data/dataset.h"
#include "core/distributed/selectors.h"
#include "core/distributed/snapshot.h"

namespace netcl::app {

// What became of a run. `error` set: it failed.
struct RunOutcome {
  std::vector<Json> done;  // each place's last message, null where there is none
  std::vector<Json> ready;
  std::optional<Error> error;
  Json failures = Json::array();
};

// Keeps SIGINT and SIGTERM of this thread waiting until a Supervisor takes them.
void block_stop_signals();

class Supervisor {
 public:
  // Called for every message of a worker ("step", "losses", "epoch", "note", "ready"), and with a
  // "note" of what happens to the run. `rank`: as the run began.
  // What it throws as netcl::Error fails the run.
  using OnMessage = std::function<void(uint32_t rank, const Json& message)>;
  // Called once, as soon as the run is known to have failed; the survivors may still run.
  using OnFailure = std::function<void(const Error& error)>;

  // `job` holds what all ranks share; rank, device and label are filled in for each.
  Supervisor(std::vector<WorkerPlace> places, Job job, const Dataset& train, const Dataset* test,
             OnMessage on_message, OnFailure on_failure = nullptr,
             FailurePolicy policy = FailurePolicy::kStop);
  ~Supervisor();

  // Runs until every worker has ended. SIGINT and SIGTERM ask for an orderly stop; a second one, or
  // two seconds without success, ends the workers.
  RunOutcome run();

 private:
  using Worker = WorkerProcess;

  std::vector<std::string> core_limits(const WorkerPlace& place) const;
  Job job_for(uint32_t place) const;
  void begin_generation();
  void read_messages(uint32_t place);
  void handle_exit(uint32_t place);
  void handle_signal();
  void handle_message(uint32_t place, const Json& message);
  void handle_problem(uint32_t place, const Json& message);
  void check_deadlines();
  void check_stalls();
  void watch_steps();
  double stall_seconds() const;
  bool all_ready() const;
  bool all_waiting() const;
  bool has_checkpoint() const;
  void complete_outcome();
  void remove_temporaries() const;
  RankState state_of(uint32_t place) const;
  std::string who(uint32_t place) const;
  std::string last_words(uint32_t place) const;
  std::string shard_of_group() const;
  // A worker is lost; ends its process. `what` continues "rank 1 (cpu:0#1): ".
  void lose(uint32_t place, ErrorCode code, const std::string& what);
  // What follows once all survivors wait.
  void go_on();
  bool in_group(uint32_t place) const;
  bool leaves(uint32_t place) const;  // has parked, for a group without it
  bool all_regroup() const;           // parked, to go on with another group
  void regroup();
  void form_group();
  void release_parked();
  void lose_spare(uint32_t place, const ExitStatus& status);
  void end_spares();
  void next_generation();
  void end_of_recovery();
  void fail_run(ErrorCode code, const std::string& text);
  void end_survivors();
  void wait_and_handle();
  bool any_running() const;
  void say(const std::string& text);

  const std::vector<WorkerPlace> places_;
  Job job_;
  const SharedMemory memory_;
  const FailurePolicy policy_;
  OnMessage on_message_;
  OnFailure on_failure_;
  UniqueFd snapshots_fd_;
  std::optional<Snapshots> snapshots_;
  std::shared_ptr<Segment> segment_;
  std::vector<std::unique_ptr<Worker>> workers_;  // by place; null: lost
  std::vector<uint32_t> group_;                   // the places of the generation's ranks
  std::vector<pid_t> pids_;                       // of all workers that there were
  std::vector<int64_t> best_steps_;               // by place: the last one seen
  std::vector<std::deque<Json>> accounts_;        // by place: of its latest snapshots
  UniqueFd signals_;
  RunOutcome outcome_;
  FailureLog log_;
  std::optional<Error> last_failure_;  // since the generation began: a recovery is under way
  std::optional<Error> suspect_;       // a worker's own error that a failure may explain
  double suspect_at_ = 0;
  bool recovering_ = false;   // from a failure until all ranks of the next generation are ready
  int64_t resume_step_ = -1;  // where that one goes on
  double generation_began_ = 0;
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
