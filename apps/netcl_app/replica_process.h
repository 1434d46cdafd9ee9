// ReplicaProcess: all ranks of a run in one worker process, a thread each, with their devices in
// one OpenCL context; for transports that need that.
//
// To the supervisor it is one worker. The ranks have a segment among themselves; what the
// supervisor reads and asks in the worker's own segment is passed between the two: its progress is
// that of the slowest rank, so that a rank that hangs is a worker that stalls. The first rank that
// fails ends the process, with an error that names it.
// Ownership: owns the ranks and their devices. Threads: the main thread's; makes one a rank.
#ifndef NETCL_APPS_NETCL_APP_REPLICA_PROCESS_H_
#define NETCL_APPS_NETCL_APP_REPLICA_PROCESS_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "apps/netcl_app/job.h"
#include "apps/netcl_app/joined_messages.h"
#include "apps/netcl_app/rank_worker.h"
#include "core/collective/segment.h"

namespace netcl::app {

class ReplicaProcess {
 public:
  // `outside`: the segment that the supervisor watches. Errors: as open_in_one_context and
  // RankWorker, naming the rank.
  ReplicaProcess(Job job, std::shared_ptr<Segment> outside);
  ReplicaProcess(const ReplicaProcess&) = delete;
  ReplicaProcess& operator=(const ReplicaProcess&) = delete;

  // Until the run ends. Returns the exit code; errors were said.
  int run();

 private:
  uint32_t n_ranks() const { return static_cast<uint32_t>(job_.members.size()); }
  void run_rank(uint32_t rank);
  // Until all ranks have ended.
  void watch();
  void say_problem_once();
  void pass_on();
  void pass_on_collective();
  uint64_t slowest_heartbeat() const;
  // Lets the supervisor, which has an eye on failures, end this process.
  void wait_for_release() const;

  const Job job_;
  const std::shared_ptr<Segment> outside_, inside_;
  JoinedMessages messages_;
  std::vector<std::unique_ptr<RankWorker>> ranks_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<bool> running_;       // by rank
  std::optional<Problem> problem_;  // the first
  bool said_problem_ = false;
  uint64_t seen_heartbeat_ = 0;
  CollectiveNote seen_collective_;
  int64_t seen_step_ = 0;
  std::string seen_phase_;
};

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_REPLICA_PROCESS_H_
