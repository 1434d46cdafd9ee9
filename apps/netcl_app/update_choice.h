// How ranks share the work of an update, and what a reproducible run asks for.
#ifndef NETCL_APPS_NETCL_APP_UPDATE_CHOICE_H_
#define NETCL_APPS_NETCL_APP_UPDATE_CHOICE_H_

#include <optional>
#include <string>
#include <vector>

#include "apps/netcl_app/config.h"
#include "apps/netcl_app/job.h"
#include "core/cl/device_info.h"
#include "core/distributed/buckets.h"
#include "core/nn/step_graphs.h"

namespace netcl::app {

// --update: "replicated" (every rank makes the whole update), "sharded" (each its share, so that
// parameters are the same bits on devices that round differently, and states take a part of the
// memory), or "auto": sharded where devices differ in make and the optimiser can. Returns one of
// the first two. Errors: kUsage for another word, or for what the optimiser or --reproducible
// cannot.
std::string choose_update(const std::string& wanted, const std::vector<DeviceInfo>& devices,
                          const TrainConfig& config);

// A rank's share of a sharded update, by the kind of its device (as the rows to begin with, see
// core/distributed/device_limits.h), and the sizes of its buckets.
std::optional<FloatRange> update_share(const Job& job, const StepGraphs& graphs);
BucketSizes bucket_sizes(const Job& job);

// The micro-shards of a reproducible run without a number of its own: 12, so that 1, 2, 3, 4, 6 and
// 12 equal workers have equal work; fewer for smaller batches.
int64_t usual_micro_shards(int64_t batch_size);

// Errors: kUsage, with what to do, for what would depend on the number of workers.
void check_reproducible(const TrainConfig& config, const StepGraphs& graphs, size_t n_workers);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_UPDATE_CHOICE_H_
