// RankWorker: one rank of a run. It trains its shard of every batch on its device, and tells the
// supervisor what happens.
//
// Ownership: owns everything of its rank; the device may be shared with other ranks of the process.
// Threads: one, the rank's.
#ifndef NETCL_APPS_NETCL_APP_RANK_WORKER_H_
#define NETCL_APPS_NETCL_APP_RANK_WORKER_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/netcl_app/checkpoint.h"
#include "apps/netcl_app/fault_plan.h"
#include "apps/netcl_app/job.h"
#include "apps/netcl_app/rank_group.h"
#include "apps/netcl_app/state_keeper.h"
#include "apps/netcl_app/worker_status.h"
#include "core/base/environment.h"
#include "core/distributed/collective_trace.h"
#include "core/distributed/device_limits.h"
#include "core/distributed/fd_channel.h"
#include "core/distributed/snapshot.h"
#include "core/distributed/trainer.h"
#include "core/runtime/kernel_choice.h"
#include "core/runtime/layer_set.h"
#include "core/runtime/plugin_host.h"

namespace netcl::app {

// What a rank is given by the process that it lives in.
struct RankHome {
  std::shared_ptr<Device> device;
  StatusSink say;
  bool shares_process = false;  // with all ranks of its group, in one OpenCL context
};

class RankWorker {
 public:
  // Attaches to the descriptors of a worker (WorkerFds). Errors: as its parts'.
  RankWorker(Job job, std::shared_ptr<Segment> segment, RankHome home);
  RankWorker(const RankWorker&) = delete;
  RankWorker& operator=(const RankWorker&) = delete;

  // Every generation of the group, until the run ends, for a rank with a process of its own.
  // Returns the exit code; errors were said.
  int run();
  // One generation. Errors: whatever ends it; nothing was said.
  void run_generation();

 private:
  // All that belongs to a group; device, queue, programs and data stay.
  void tear_down();
  // Keeps the state that the next group goes on from, and whose that is.
  void regroup();
  // Waits, parked, for the supervisor's word. False: the run is over.
  bool next_generation();
  // Of a pass: this rank's, which may hold less than a whole one where the shares are free.
  int64_t max_rows() const;
  int64_t own_limit() const { return limits_[job_.rank].max_rows; }
  // Every rank finds the same from what the supervisor says of all devices.
  void find_limits();
  // Where a run goes on with the same devices, it begins with the shares that it had.
  ShardPlan first_plan() const;
  Json group_devices() const;
  Json metrics_of(const Sums& sums) const;
  int64_t micro_shards() const { return job_.mode == "train" ? config_.micro_shards : 0; }
  void open_group();
  Group group() { return group_ ? group_->links() : Group{}; }
  void read_start();
  void read_snapshot();
  void read_progress(const Json& state);
  void start_values();
  TrainerOptions trainer_options() const;
  TrainerHooks hooks();
  // Steps' losses go to the supervisor, which outlives this worker: in time before a snapshot that
  // the next generation may go on from.
  void send_losses(Json message);
  void boundary(int64_t step, bool epoch_end);
  void point(const char* name, int64_t step = 0) { faults_.at(name, step); }
  void flip_a_bit();
  // What is written next beside last.safetensors goes to a device that is full.
  void fill_the_disk();
  void end_of_epoch(const EpochReport& report);
  // `best` follows the test accuracy (but not where perplexity was asked for), or the test loss, or
  // without a test set the training loss.
  void write_checkpoints(const EpochReport& report);
  void say_scaled_rate() const;
  void ready();
  void evaluate();
  void explain();
  void finish_trace();
  Json account_json(const ShardAccount& account) const;
  static Json account_message(const RankAccount& account);
  void done(StopReason reason);

  Job job_;
  const bool shares_process_;
  const StatusSink say_;
  FaultPlan faults_{job_.place, environment::faults()};
  std::optional<Snapshots> snapshots_;
  std::optional<FdChannel> channel_;  // of a process with one rank
  std::shared_ptr<Segment> segment_;
  TrainConfig config_;
  Dataset train_;
  std::optional<Dataset> test_;
  std::optional<Trace> trace_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<Queue> queue_;
  PluginHost plugins_;
  KernelChoice kernels_;
  LayerSet layers_;
  const Optimizer optimizer_;
  const StepGraphs graphs_;
  std::optional<RankGroup> group_;
  std::optional<CollectiveTrace> collective_trace_;
  cl::Buffer send_, recv_;
  std::optional<Replica> replica_;
  std::optional<Rhythm> checks_;
  std::optional<StateKeeper> keeper_;
  std::optional<Trainer> trainer_;
  std::optional<Checkpoint> start_;
  std::optional<TrainerProgress> progress_;  // of the snapshot that this generation goes on from
  int64_t first_step_ = 0;
  int64_t saved_step_ = -1;  // -1: not known
  Plateau plateau_;
  Sums epoch_so_far_;
  double best_ = -std::numeric_limits<double>::infinity();
  double last_message_ = 0;
  std::vector<double> losses_, step_seconds_;  // up to last_step_, not sent yet
  int64_t last_step_ = 0, step_begun_ = 0;
  bool is_set_up_ = false;
  std::vector<uint32_t> next_places_;  // of the group that the ranks want to go on with, or empty
  RankAccount account_;                // of this worker, when the group was formed anew
  std::vector<RankLimits> limits_;     // of all ranks, where the shares are free
};

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_RANK_WORKER_H_
