#include "apps/netcl_app/replica_process.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <numeric>
#include <thread>
#include <utility>

#include "apps/netcl_app/one_context.h"
#include "core/distributed/fd_channel.h"

namespace netcl::app {

namespace {

constexpr std::chrono::milliseconds kLook{10};

// What rank `rank` would be told if it had a process of its own.
Job job_of(const Job& job, uint32_t rank) {
  Job out = job;
  out.members.clear();
  out.rank = out.place = rank;
  out.n_ranks = out.n_places = static_cast<uint32_t>(job.members.size());
  out.places.resize(job.members.size());
  std::iota(out.places.begin(), out.places.end(), 0u);
  out.labels.clear();
  out.devices.clear();
  for (const WorkerPlace& member : job.members) {
    out.labels.push_back(member.label());
    out.devices.push_back(member.device);
  }
  out.device = job.members[rank].device;
  out.share_index = job.members[rank].share_index;
  out.shares = job.members[rank].shares;
  out.label = out.labels[rank];
  out.place_labels = out.labels;
  return out;
}

std::string who(const Job& job, uint32_t rank) {
  return str_cat("rank ", rank, " (", job.members[rank].label(), "): ");
}

}  // namespace

ReplicaProcess::ReplicaProcess(Job job, std::shared_ptr<Segment> outside)
    : job_(std::move(job)),
      outside_(std::move(outside)),
      inside_(Segment::create(n_ranks())),
      messages_(n_ranks(), send_status),
      running_(n_ranks(), true) {
  outside_->set_phase(0, Phases::kSetUp);
  const auto devices =
      open_in_one_context(job_.members, job_.transport,
                          status_logger([this](const Json& note) { messages_.say(0, note); }));
  // Ranks that wait for a program that another one builds live as well.
  for (const auto& device : devices) {
    device->programs().set_progress([this] {
      for (uint32_t r = 0; r < n_ranks(); ++r) inside_->tick(r);
      outside_->tick(0);
    });
  }
  for (uint32_t r = 0; r < n_ranks(); ++r) {
    const std::optional<Problem> problem = problem_of([&] {
      RankHome home{devices[r], [this, r](const Json& message) { messages_.say(r, message); },
                    /*shares_process=*/true};
      ranks_.push_back(std::make_unique<RankWorker>(job_of(job_, r), inside_, std::move(home)));
    });
    if (problem) throw Error(problem->code, who(job_, r) + problem->text);
    outside_->tick(0);
  }
}

void ReplicaProcess::run_rank(uint32_t rank) {
  const std::optional<Problem> problem = problem_of([&] { ranks_[rank]->run_generation(); });
  const std::lock_guard<std::mutex> lock(mutex_);
  running_[rank] = false;
  ended_.notify_all();
  if (!problem || problem_) return;
  problem_ = Problem{problem->code, who(job_, rank) + problem->text};
  inside_->abort(problem_->text);
}

uint64_t ReplicaProcess::slowest_heartbeat() const {
  uint64_t out = std::numeric_limits<uint64_t>::max();
  for (uint32_t r = 0; r < n_ranks(); ++r) {
    if (running_[r]) out = std::min(out, inside_->state(r).heartbeat_ns);
  }
  return out;
}

// The one that is furthest behind, and whose it is.
void ReplicaProcess::pass_on_collective() {
  CollectiveNote last = inside_->state(0).collective;
  uint32_t rank = 0;
  bool others_ahead = false;
  for (uint32_t r = 1; r < n_ranks(); ++r) {
    const CollectiveNote theirs = inside_->state(r).collective;
    others_ahead = others_ahead || theirs.sequence != last.sequence;
    if (theirs.sequence >= last.sequence) continue;
    last = theirs;
    rank = r;
  }
  if (others_ahead) {
    const std::string text =
        str_cat(std::string(last.name, ::strnlen(last.name, sizeof(last.name))), " of rank ", rank);
    last.name[text.copy(last.name, sizeof(last.name) - 1)] = 0;
  }
  if (std::memcmp(&last, &seen_collective_, sizeof(last)) != 0) outside_->set_collective(0, last);
  seen_collective_ = last;
}

void ReplicaProcess::pass_on() {
  if (outside_->stop_requested()) inside_->request_stop();
  if (const auto reason = outside_->aborted()) inside_->abort(*reason);
  const RankState first = inside_->state(0);
  if (first.phase != seen_phase_) outside_->set_phase(0, first.phase);
  if (first.step != seen_step_) outside_->set_step(0, first.step);
  seen_phase_ = first.phase;
  seen_step_ = first.step;
  pass_on_collective();
  const uint64_t heartbeat = slowest_heartbeat();
  if (heartbeat > seen_heartbeat_) outside_->tick(0);
  seen_heartbeat_ = heartbeat;
}

void ReplicaProcess::say_problem_once() {
  if (!problem_ || said_problem_) return;
  said_problem_ = true;
  const bool first = outside_->abort(problem_->text);
  // Without a supervisor there is nobody to tell.
  (void)problem_of([&] { messages_.say(0, problem_message("error", *problem_, first)); });
}

void ReplicaProcess::watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (std::find(running_.begin(), running_.end(), true) != running_.end()) {
    ended_.wait_for(lock, kLook);
    say_problem_once();
    pass_on();
  }
  say_problem_once();
}

void ReplicaProcess::wait_for_release() const {
  const FdChannel channel{UniqueFd(WorkerFds::kChannel)};
  send_status({{"type", "parked"}, {"next", Json::array()}});
  channel.receive();
}

int ReplicaProcess::run() {
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < n_ranks(); ++r) threads.emplace_back([this, r] { run_rank(r); });
  watch();
  for (std::thread& thread : threads) thread.join();
  if (problem_) return exit_code(problem_->code);
  if (job_.survives) wait_for_release();
  return 0;
}

}  // namespace netcl::app
