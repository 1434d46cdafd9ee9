// One rank of `bench allreduce`: times collectives, plain copies and the links beside them, and
// checks every result. Runs in a worker process; all ranks make the same calls.
//
// What a row's times are (all on CLOCK_MONOTONIC, from the moment in which the last rank begins to
// the one in which the last rank ends; the ranks begin behind a barrier, and data is new each
// time):
//   all_reduce  from the data ready in the bucket on every device, to a marker behind the wait
//   memcpy      every rank copies as many bytes, at once, into its part of shared memory that was
//               written before; taken in turn with the all_reduce
//   d2h, h2d    a rank alone copies them between its device and pinned memory; the slowest rank's
//   root        all ranks copy at once, in the better direction
#ifndef NETCL_APPS_NETCL_APP_BENCH_ALLREDUCE_WORKER_H_
#define NETCL_APPS_NETCL_APP_BENCH_ALLREDUCE_WORKER_H_

#include <memory>

#include "apps/netcl_app/job.h"
#include "core/collective/segment.h"

namespace netcl::app {

// Entry of the job mode "bench_allreduce". job.bench: {"bytes": […], "dtypes": […], "repeats"}.
// Rank 0 sends a message of type "row" for each combination. Errors: as a worker's.
void bench_allreduce(const Job& job, const std::shared_ptr<Segment>& segment);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_BENCH_ALLREDUCE_WORKER_H_
