#include "apps/netcl_app/worker.h"

#include <unistd.h>

#include <optional>

#include "apps/netcl_app/bench_allreduce_worker.h"
#include "apps/netcl_app/fault_plan.h"
#include "apps/netcl_app/job.h"
#include "apps/netcl_app/open_device.h"
#include "apps/netcl_app/own_cores.h"
#include "apps/netcl_app/rank_worker.h"
#include "apps/netcl_app/replica_process.h"
#include "apps/netcl_app/worker_status.h"
#include "core/base/crash_note.h"
#include "core/base/environment.h"
#include "core/distributed/process.h"
#include "core/distributed/snapshot.h"

namespace netcl::app {

namespace {

void start_faults(const Job& job, uint32_t place) {
  FaultPlan faults(place, environment::faults());
  std::optional<Snapshots> snapshots;
  if (job.regroups) {
    snapshots.emplace(WorkerFds::kSnapshots);
    faults.set_once([&](uint32_t index) { return snapshots->mark_once(index); });
  }
  faults.at(FaultPoints::kStart);
}

RankHome own_home(const Job& job) {
  return {std::make_shared<Device>(device_of(job.device, job.config.value("micro_shards", 0) > 0),
                                   environment::cache_dir(), status_logger(send_status)),
          send_status};
}

}  // namespace

int worker_main() {
  Job job;
  std::shared_ptr<Segment> segment;
  std::optional<RankWorker> worker;
  std::optional<ReplicaProcess> replicas;
  const std::optional<Problem> problem = problem_of([&] {
    job = job_from_json(Json::parse(text_from_fd(WorkerFds::kJob)));
    die_with_parent(static_cast<pid_t>(job.parent));
    watch_crashes({WorkerFds::kStatus, 0, false});
    keep_to_own_cores(job);
    segment = Segment::attach(UniqueFd(WorkerFds::kSegment));
    segment->set_identity(job.rank, ::getpid(), job.label + " " + job.device.name);
    if (job.members.empty()) start_faults(job, job.place);
    for (uint32_t r = 0; r < job.members.size(); ++r) start_faults(job, r);
    if (job.mode == "bench_allreduce") return bench_allreduce(job, segment);
    if (!job.members.empty()) {
      replicas.emplace(job, segment);
    } else {
      worker.emplace(job, segment, own_home(job));
    }
  });
  if (!problem && replicas) return replicas->run();
  if (!problem) return worker ? worker->run() : 0;
  say_problem("error", segment.get(), job, *problem);
  return exit_code(problem->code);
}

}  // namespace netcl::app
