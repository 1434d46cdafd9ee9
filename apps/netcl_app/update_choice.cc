#include "apps/netcl_app/update_choice.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/distributed/device_limits.h"
#include "core/nn/update_graph.h"

namespace netcl::app {

namespace {

constexpr int64_t kUsualMicroShards = 12;

// Kernel sets are chosen by these facts, too.
bool same_make(const DeviceInfo& a, const DeviceInfo& b) {
  return a.name == b.name && a.platform == b.platform && a.vendor == b.vendor && a.arch == b.arch &&
         a.driver == b.driver;
}

}  // namespace

std::string choose_update(const std::string& wanted, const std::vector<DeviceInfo>& devices,
                          const TrainConfig& config) {
  const std::vector<std::string> words = {"auto", "replicated", "sharded"};
  NETCL_CHECK(std::find(words.begin(), words.end(), wanted) != words.end(), ErrorCode::kUsage,
              "--update ", wanted, ": expected auto, replicated or sharded");
  const bool can = can_share_update(config.optimizer);
  NETCL_CHECK(wanted != "sharded" || can, ErrorCode::kUsage, "--update sharded: not with ",
              optimizer_name(config.optimizer.type),
              ", which needs the norms of whole tensors; use --update replicated");
  NETCL_CHECK(wanted != "sharded" || config.micro_shards == 0, ErrorCode::kUsage,
              "--update sharded: norms of the gradient would depend on the number of workers; with "
              "--reproducible (micro_shards) use --update replicated");
  if (wanted != "auto") return wanted;
  const bool differ = std::any_of(devices.begin(), devices.end(), [&](const DeviceInfo& device) {
    return !same_make(device, devices[0]);
  });
  return differ && can && config.micro_shards == 0 ? "sharded" : "replicated";
}

std::optional<FloatRange> update_share(const Job& job, const StepGraphs& graphs) {
  if (job.update != "sharded" || job.n_ranks == 1 || job.mode != "train") return std::nullopt;
  return block_shares(graphs.parameters.num_floats(), first_weights(job.devices))[job.rank];
}

BucketSizes bucket_sizes(const Job& job) {
  BucketSizes out;
  if (job.bucket_bytes > 0) {
    out.first_bytes = std::min(out.first_bytes, job.bucket_bytes);
    out.other_bytes = job.bucket_bytes;
  }
  return out;
}

int64_t usual_micro_shards(int64_t batch_size) { return std::min(kUsualMicroShards, batch_size); }

void check_reproducible(const TrainConfig& config, const StepGraphs& graphs, size_t n_workers) {
  if (config.micro_shards == 0) return;
  NETCL_CHECK(config.accumulate == 1, ErrorCode::kUsage, "--reproducible: accumulate is ",
              config.accumulate, ", but a step is made of ", config.micro_shards,
              " passes (micro_shards) already; set accumulate to 1, and micro_shards higher if "
              "memory is short");
  NETCL_CHECK(graphs.largest_all_reduce() == 0, ErrorCode::kUsage,
              "--reproducible: the model adds values up over the workers in the middle of a step "
              "(batch_norm with \"sync\"), in an order that depends on their number; take \"sync\" "
              "away, so that each of the ",
              config.micro_shards,
              " parts of a batch (micro_shards) has statistics of its own, or "
              "train without --reproducible");
  NETCL_CHECK(!config.schedule.scale_lr_by_devices, ErrorCode::kUsage,
              "--reproducible: schedule.scale_lr_by_devices makes the learning rate depend on the "
              "number of workers; take it away and give the rate itself");
  NETCL_CHECK(
      n_workers <= static_cast<size_t>(config.micro_shards), ErrorCode::kUsage,
      "--reproducible: ", n_workers, " workers share ", config.micro_shards,
      " parts of a batch (micro_shards), so some would have none; use fewer workers or more "
      "micro_shards");
}

}  // namespace netcl::app
