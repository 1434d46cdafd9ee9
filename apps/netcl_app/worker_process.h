// WorkerProcess: a worker as the supervisor sees it.
//
// A worker keeps its place (its device) for the whole run; its rank is its number in the present
// generation of the group.
// Ownership: owns the process and ends it. Threads: the supervisor's.
#ifndef NETCL_APPS_NETCL_APP_WORKER_PROCESS_H_
#define NETCL_APPS_NETCL_APP_WORKER_PROCESS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/netcl_app/job.h"
#include "core/collective/segment.h"
#include "core/data/dataset.h"
#include "core/distributed/fd_channel.h"
#include "core/distributed/process.h"
#include "core/distributed/selectors.h"

namespace netcl::app {

// What all workers of a run inherit.
struct SharedMemory {
  const Dataset& train;
  const Dataset* test = nullptr;
  int snapshots = -1;  // descriptor; -1: the run keeps its group
};

class WorkerProcess {
 public:
  enum class State {
    kRunning,
    kFailed,  // has failed because of another one, and tears down
    kParked,  // waits for the next generation
    kEnded    // the process has ended, or is about to
  };

  // Starts the process with `job`, which has rank and place filled in, and with changes of its
  // environment.
  WorkerProcess(const WorkerPlace& place, const Job& job, const Segment& segment,
                const SharedMemory& memory, const std::vector<std::string>& environment);

  // Gives a parked worker its next job. False if it is gone.
  bool next(const Job& job, const Segment& segment);
  // Lets a parked worker end.
  void release();

  ChildProcess child;
  LineReader reader;
  uint32_t rank;
  State state = State::kRunning;
  bool done = false;        // of the present generation
  bool said_error = false;  // which explains its end
  std::string crash;        // where it crashed, in its own words
  bool released = false;
  std::vector<uint32_t> next_group;  // parked: the places that it wants to go on with, or empty
  Json account;                      // parked to go on: what it has done

 private:
  struct Started;
  WorkerProcess(Started started, uint32_t rank);
  static Started start(const WorkerPlace& place, const Job& job, const Segment& segment,
                       const SharedMemory& memory, const std::vector<std::string>& environment);

  std::optional<FdChannel> channel_;
};

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_WORKER_PROCESS_H_
