// Job: everything that a worker must know, sent by the supervisor as JSON through a memfd.
#ifndef NETCL_APPS_NETCL_APP_JOB_H_
#define NETCL_APPS_NETCL_APP_JOB_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "apps/netcl_app/config.h"
#include "core/base/unique_fd.h"
#include "core/cl/device_info.h"
#include "core/distributed/selectors.h"
#include "core/runtime/kernel_choice.h"
#include "core/runtime/plugin_host.h"

namespace netcl::app {

// Descriptors as a worker sees them.
struct WorkerFds {
  static constexpr int kStatus = 3, kSegment = 4, kTrain = 5, kTest = 6, kJob = 7;
  // Only where a run may form its group anew: the channel over which the next generation's job and
  // segment come (core/distributed/fd_channel.h), and the snapshots.
  static constexpr int kChannel = 8, kSnapshots = 9;
};

// What a worker is at, as the supervisor reads it.
struct Phases {
  static constexpr const char* kSetUp = "setting up";
  static constexpr const char* kKernels = "preparing kernels";
  static constexpr const char* kTraining = "training";
  static constexpr const char* kEvaluating = "evaluating";
  static constexpr const char* kWriting = "writing a checkpoint";
};

struct Job {
  std::string mode = "train";  // or "eval", "explain", "bench_allreduce"
  Json config;                 // resolved
  std::string config_name;     // for messages
  uint32_t rank = 0, n_ranks = 1;
  uint32_t place = 0;                  // the rank that it had when the run began
  uint32_t n_places = 1;               // ranks that the run began with
  std::vector<uint32_t> places = {0};  // of each rank
  uint32_t generation = 0;             // how often a group was formed before
  bool survives = false;               // a failure of another rank is followed by a next generation
  // The run may form its group anew: after a failure, or where shares are free to go on without a
  // worker that holds the others up.
  bool regroups = false;
  int snapshot = -1;   // slot to go on from; -1: none
  int64_t parent = 0;  // pid of the supervisor
  DeviceInfo device;
  int share_index = 0;  // which part of the device
  DeviceShares shares;
  std::string label;                      // of the device, "cpu:0#1"
  std::vector<std::string> labels;        // of all ranks' devices
  std::vector<std::string> place_labels;  // of all places, also of those that left
  std::vector<DeviceInfo> devices;        // of all ranks
  PluginOptions plugins;
  std::map<std::string, KernelPin> pins;
  // As they were when the run began, so that all workers of all generations choose alike.
  std::vector<TunedFile> tuned;
  // The ranks of the one worker process, where all share it; empty: a process each. The members
  // above then describe the process.
  std::vector<WorkerPlace> members;
  std::string transport;
  std::string shard = "auto";
  std::string update = "replicated";     // or "sharded"
  int64_t bucket_bytes = 0;              // of gradients; 0: as usual
  int64_t cores = 0;                     // most cores of an undivided CPU device; 0: all
  std::set<std::string> without_passes;  // of the step compiler
  std::set<std::string> kept_ops;        // by it, see Graph::keep_ops
  std::string checkpoints;               // directory; "" writes none
  std::string resume;                    // checkpoint file to start from, or ""
  int64_t max_steps = 0;
  int64_t trace_after = 0, trace_steps = 0;  // records the steps after; 0 steps: nothing
  Json bench;                                // what a benchmark's mode wants to know
  bool has_test = false;
  // Longest wait for a peer. Far beyond a stall: the supervisor, which sees every rank, names the
  // one that stalls; this ends a group whose ranks all wait for each other.
  uint64_t timeout_ms = 300000;
  double stall_seconds = 0;  // without progress, from the first step on; 0: by the steps' duration
};

Json to_json(const Job& job);
Job job_from_json(const Json& json);

// A memfd that holds the text. Errors: kTraining.
UniqueFd text_to_memfd(const std::string& text);
std::string text_from_fd(int fd);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_JOB_H_
