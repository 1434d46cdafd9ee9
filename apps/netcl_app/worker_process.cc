#include "apps/netcl_app/worker_process.h"

#include <filesystem>
#include <utility>

#include "core/base/environment.h"
#include "core/cl/icd.h"

namespace netcl::app {

struct WorkerProcess::Started {
  ChildProcess child;
  std::optional<FdChannel> channel;
};

WorkerProcess::Started WorkerProcess::start(const WorkerPlace& place, const Job& job,
                                            const Segment& segment, const SharedMemory& memory,
                                            const std::vector<std::string>& more) {
  const UniqueFd text = text_to_memfd(to_json(job).dump());
  SpawnOptions options;
  options.argv = {std::filesystem::canonical("/proc/self/exe").string(), "worker"};
  std::vector<std::string> changes = only_driver(place.device.icd);
  changes.insert(changes.end(), more.begin(), more.end());
  options.environment = environment::with_changes(changes);
  options.status_fd = WorkerFds::kStatus;
  options.descriptors = {{segment.fd(), WorkerFds::kSegment},
                         {memory.train.fd(), WorkerFds::kTrain},
                         {text.get(), WorkerFds::kJob}};
  if (memory.test != nullptr) options.descriptors.push_back({memory.test->fd(), WorkerFds::kTest});
  std::optional<FdChannel> channel;
  UniqueFd theirs;
  if (memory.snapshots >= 0) {
    auto ends = FdChannel::pair();
    channel.emplace(std::move(ends.first));
    theirs = std::move(ends.second);
    options.descriptors.push_back({theirs.get(), WorkerFds::kChannel});
    options.descriptors.push_back({memory.snapshots, WorkerFds::kSnapshots});
  }
  return {ChildProcess(options), std::move(channel)};
}

WorkerProcess::WorkerProcess(Started started, uint32_t rank_in)
    : child(std::move(started.child)),
      reader(child.status_fd()),
      rank(rank_in),
      channel_(std::move(started.channel)) {}

WorkerProcess::WorkerProcess(const WorkerPlace& place, const Job& job, const Segment& segment,
                             const SharedMemory& memory,
                             const std::vector<std::string>& environment)
    : WorkerProcess(start(place, job, segment, memory, environment), job.rank) {}

bool WorkerProcess::next(const Job& job, const Segment& segment) {
  const UniqueFd text = text_to_memfd(to_json(job).dump());
  rank = job.rank;
  state = State::kRunning;
  done = false;
  next_group.clear();
  return channel_ && channel_->send("next", {segment.fd(), text.get()});
}

void WorkerProcess::release() {
  if (!channel_ || released) return;
  released = true;
  channel_->send("end", {});
}

}  // namespace netcl::app
