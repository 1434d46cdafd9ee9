#include "apps/netcl_app/supervisor.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "apps/netcl_app/probe.h"
#include "core/base/clock.h"
#include "core/base/environment.h"
#include "core/base/file.h"
#include "core/base/text.h"

namespace netcl::app {

namespace {

constexpr double kStopSeconds = 1.7;      // for an orderly stop
constexpr double kSurvivorSeconds = 1.5;  // for the others after a failure
constexpr double kPatientSeconds =
    120;  // without progress while kernels compile or files are written
constexpr double kLeastStallSeconds = 10;  // without progress otherwise, ...
constexpr double kStallSteps = 10;         // ... or this many steps' time
constexpr size_t kTimedSteps = 101;
constexpr double kHeldUpSeconds = 2;  // between two looks: the supervisor itself did not run
constexpr int kPollMs = 200;
constexpr size_t kKeptAccounts = 8;  // of a worker; snapshots have two slots, and may be repeated

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  struct sigaction hang_up {};
  ::sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);  // nohup
  return set;
}

}  // namespace

void block_stop_signals() {
  const sigset_t set = stop_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

Supervisor::Supervisor(std::vector<WorkerPlace> places, Job job, const Dataset& train,
                       const Dataset* test, OnMessage on_message, OnFailure on_failure,
                       FailurePolicy policy)
    : places_(std::move(places)),
      job_(std::move(job)),
      memory_{train, test, -1},
      policy_(policy),
      on_message_(std::move(on_message)),
      on_failure_(std::move(on_failure)),
      workers_(places_.size()),
      best_steps_(places_.size(), 0),
      accounts_(places_.size()) {
  outcome_.done.resize(places_.size());
  outcome_.ready.resize(places_.size());
  for (uint32_t place = 0; place < places_.size(); ++place) group_.push_back(place);
  job_.survives = policy_ != FailurePolicy::kStop;
  job_.regroups = places_.size() > 1 && (job_.regroups || job_.survives);
  if (job_.survives || job_.regroups) {
    snapshots_fd_ = Snapshots::create();
    snapshots_.emplace(snapshots_fd_.get());
  }
  block_stop_signals();
  const sigset_t set = stop_signals();
  signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  NETCL_CHECK(signals_.valid(), ErrorCode::kInternal, "signalfd failed");
}

Supervisor::~Supervisor() {
  const sigset_t set = stop_signals();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

// PoCL makes as many threads as the machine has cores, whatever the affinity: cap them, so that
// workers share a CPU device, each GPU keeps a core for the thread that feeds it, and a small step
// wakes no more threads than it can use.
std::vector<std::string> Supervisor::core_limits(const WorkerPlace& place) const {
  const auto gpus = std::count_if(places_.begin(), places_.end(), [](const WorkerPlace& other) {
    return other.device.type == "gpu";
  });
  const bool whole = place.shares.count < 2;
  if (place.device.type != "cpu" || (whole && gpus == 0 && job_.cores == 0)) return {};
  int64_t cores = place.shares.units.empty()
                      ? (place.device.compute_units - gpus) / place.shares.count
                      : place.shares.range(place.share_index, 0).count;
  if (whole && job_.cores > 0) cores = std::min(cores, job_.cores);
  const std::string count = std::to_string(std::max<int64_t>(1, cores));
  return {"POCL_MAX_PTHREAD_COUNT=" + count, "POCL_CPU_MAX_CU_COUNT=" + count};
}

Job Supervisor::job_for(uint32_t place) const {
  Job job = job_;
  job.place = place;
  job.rank = static_cast<uint32_t>(std::find(group_.begin(), group_.end(), place) - group_.begin());
  job.n_ranks = static_cast<uint32_t>(group_.size());
  job.n_places = static_cast<uint32_t>(places_.size());
  job.places = group_;
  for (const uint32_t each : group_) {
    job.labels.push_back(places_[each].label());
    job.devices.push_back(places_[each].device);
  }
  job.regroups = snapshots_.has_value();
  for (const WorkerPlace& each : places_) job.place_labels.push_back(each.label());
  job.parent = ::getpid();
  job.device = places_[place].device;
  job.share_index = places_[place].share_index;
  job.shares = places_[place].shares;
  job.label = places_[place].label();
  job.has_test = memory_.test != nullptr;
  job.shard = shard_of_group();
  return job;
}

// Weights by hand are those of the places that are left.
std::string Supervisor::shard_of_group() const {
  std::vector<std::string> weights = split(job_.shard, ',');
  if (group_.size() == places_.size() || weights.size() != places_.size()) return job_.shard;
  std::vector<std::string> out;
  bool all_zero = true;
  for (const uint32_t place : group_) {
    out.push_back(weights[place]);
    all_zero = all_zero && std::strtod(weights[place].c_str(), nullptr) == 0;
  }
  return all_zero ? "even" : join(out, ",");
}

// Ranks of the group that have a process go on in it; the others get one.
void Supervisor::begin_generation() {
  segment_ = Segment::create(static_cast<uint32_t>(group_.size()));
  if (stop_deadline_ != 0) segment_->request_stop();
  for (const uint32_t place : group_) outcome_.done[place] = outcome_.ready[place] = Json();
  SharedMemory memory = memory_;
  memory.snapshots = snapshots_fd_.get();
  last_failure_.reset();
  suspect_.reset();
  second_hand_.clear();
  seen_step_ = 0;
  generation_began_ = awake_since_ = last_look_ = now_seconds();
  for (const uint32_t place : group_) {
    std::unique_ptr<Worker>& worker = workers_[place];
    // One that is gone by now is seen as ended in the next round.
    if (worker != nullptr) {
      worker->next(job_for(place), *segment_);
      continue;
    }
    worker = std::make_unique<Worker>(places_[place], job_for(place), *segment_, memory,
                                      core_limits(places_[place]));
    pids_.push_back(worker->child.pid());
  }
}

RankState Supervisor::state_of(uint32_t place) const {
  return segment_->state(workers_[place]->rank);
}

std::string Supervisor::who(uint32_t place) const {
  return str_cat("rank ", place, " (", places_[place].label(), "): ");
}

void Supervisor::say(const std::string& text) {
  on_message_(0, {{"type", "note"}, {"text", text}});
}

void Supervisor::fail_run(ErrorCode code, const std::string& text) {
  recovering_ = false;
  if (!outcome_.error) {
    outcome_.error = Error(code, text);
    if (on_failure_) on_failure_(*outcome_.error);
  }
  segment_->abort(outcome_.error->message());
  release_parked();
  if (kill_deadline_ == 0) kill_deadline_ = now_seconds() + kSurvivorSeconds;
}

void Supervisor::lose(uint32_t place, ErrorCode code, const std::string& what) {
  Worker& worker = *workers_[place];
  const int64_t step = std::max(state_of(place).step, best_steps_[place]);
  const std::string text = who(place) + what;
  log_.add({place, places_[place].label(), step, what, "stopped", now_seconds()});
  if (policy_ == FailurePolicy::kStop || outcome_.error || stop_deadline_ != 0)
    return fail_run(code, text);
  worker.child.kill();
  worker.state = Worker::State::kEnded;
  segment_->abort(text);
  last_failure_ = Error(code, text);
  recovering_ = true;
  say(text + (policy_ == FailurePolicy::kRestart ? "; it is started anew"
                                                 : "; the others go on without it"));
}

void Supervisor::handle_problem(uint32_t place, const Json& message) {
  const int number = message.at("code").get<int>();
  const ErrorCode codes[] = {ErrorCode::kUsage,    ErrorCode::kDevice,     ErrorCode::kPlugin,
                             ErrorCode::kData,     ErrorCode::kTraining,   ErrorCode::kCheckpoint,
                             ErrorCode::kInternal, ErrorCode::kInterrupted};
  const auto* found = std::find_if(std::begin(codes), std::end(codes),
                                   [&](ErrorCode c) { return exit_code(c) == number; });
  const ErrorCode code = found == std::end(codes) ? ErrorCode::kInternal : *found;
  const std::string what = message.at("message").get<std::string>();
  const bool first = message.at("first").get<bool>();
  Worker& worker = *workers_[place];
  if (message.at("type") == "failed") {
    // It tears down and parks. Its own error is one only if no other worker is lost: transports
    // tell their peers of a lost rank before its process says why.
    worker.state = Worker::State::kFailed;
    if (first && !suspect_) {
      suspect_ = Error(code, who(place) + what);
      suspect_at_ = now_seconds();
    }
  } else {
    worker.said_error = true;
    if (code == ErrorCode::kDevice && (first || job_.survives)) return lose(place, code, what);
    // A rank that failed because of another one has nothing to add.
    if (first || job_.survives) return fail_run(code, who(place) + what);
  }
  if (second_hand_.empty()) second_hand_ = who(place) + what;
}

void Supervisor::handle_message(uint32_t place, const Json& message) {
  const std::string type = message.at("type").get<std::string>();
  Worker& worker = *workers_[place];
  if (type == "error" || type == "failed") return handle_problem(place, message);
  if (type == "parked") {
    worker.state = Worker::State::kParked;
    worker.next_group = message.value("next", std::vector<uint32_t>());
    if (!worker.next_group.empty()) outcome_.done[place] = message.at("account");
    if (outcome_.error) worker.release();
    return;
  }
  if (type == "crash") {  // its last words
    worker.crash = message.at("text").get<std::string>();
    return;
  }
  if (type == "account") {
    accounts_[place].push_back(message);
    if (accounts_[place].size() > kKeptAccounts) accounts_[place].pop_front();
    return;
  }
  if (type == "done") {
    worker.done = true;
    outcome_.done[place] = message;
  }
  if (type == "ready") {
    outcome_.ready[place] = message;
    end_of_recovery();
  }
  on_message_(place, message);
}

void Supervisor::read_messages(uint32_t place) {
  for (const std::string& line : workers_[place]->reader.read_lines()) {
    // A worker that was killed may leave half a line.
    const Json message = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!message.is_object()) continue;
    try {
      handle_message(place, message);
    } catch (const Error& e) {  // writing what it says failed: a full disk
      fail_run(e.code(), e.message());
    }
  }
}

// Where a dead or silent rank was, and how far the others have come.
std::string Supervisor::last_words(uint32_t place) const {
  const RankState state = state_of(place);
  std::string out = str_cat(" while ", state.phase.empty() ? "starting" : state.phase);
  if (state.step > 0) out += str_cat(", after step ", state.step);
  const CollectiveNote& mine = state.collective;
  if (mine.sequence > 0)
    out += str_cat("; its last collective was \"", mine.name, "\" number ", mine.sequence);
  for (const uint32_t other : group_) {
    if (other == place) continue;
    const CollectiveNote theirs = state_of(other).collective;
    if (theirs.sequence <= mine.sequence) continue;
    return out + str_cat("; rank ", other, " waits in number ", theirs.sequence);
  }
  return out;
}

bool Supervisor::has_checkpoint() const {
  std::error_code error;
  return !job_.checkpoints.empty() &&
         std::filesystem::exists(std::filesystem::path(job_.checkpoints) / "last.safetensors",
                                 error);
}

void Supervisor::handle_exit(uint32_t place) {
  Worker& worker = *workers_[place];
  const auto status = worker.child.exit_status();
  if (!status || worker.state == Worker::State::kEnded) return;
  read_messages(place);
  if (worker.state == Worker::State::kEnded) return;
  const bool expected =
      worker.said_error || worker.released || (!job_.survives && status->success() && worker.done);
  worker.state = Worker::State::kEnded;
  if (expected) return;
  if (!in_group(place) || leaves(place)) return lose_spare(place, *status);
  const bool killed = status->by_signal && status->value == SIGKILL;
  lose(place, ErrorCode::kTraining,
       str_cat("the worker (pid ", worker.child.pid(), ") died", last_words(place), ": ",
               status->describe(), worker.crash.empty() ? "" : " " + worker.crash,
               killed ? "; the system kills when memory is short: see its log, or use a smaller "
                        "batch"
                      : "",
               policy_ == FailurePolicy::kStop && has_checkpoint()
                   ? ". The last checkpoint is intact; go on with --resume"
                   : ""));
}

// A worker that the group had left out: the run goes on as it is.
void Supervisor::lose_spare(uint32_t place, const ExitStatus& status) {
  const std::string what = str_cat("the worker (pid ", workers_[place]->child.pid(),
                                   ") died while it was left out: ", status.describe());
  log_.add({place, places_[place].label(), best_steps_[place], what, FailureLog::kLeftOut,
            now_seconds()});
  say(who(place) + what);
}

void Supervisor::handle_signal() {
  signalfd_siginfo info{};
  if (::read(signals_.get(), &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) return;
  // Also in a recovery: the next generation makes a step, saves it, and stops.
  if (stop_deadline_ == 0 && (all_ready() || job_.generation > 0)) {
    segment_->request_stop();
    stop_deadline_ = now_seconds() + kStopSeconds;
  } else {  // a second one, or before there is anything to save
    stop_twice_ = stop_deadline_ != 0;
    stop_deadline_ = now_seconds();
  }
}

bool Supervisor::all_ready() const {
  return std::all_of(group_.begin(), group_.end(),
                     [this](uint32_t place) { return outcome_.ready[place].is_object(); });
}

void Supervisor::watch_steps() {
  const int64_t step = segment_->state(0).step;
  if (step == seen_step_) return;
  const double now = now_seconds();
  if (seen_step_ > 0) {
    step_seconds_.push_back((now - seen_step_at_) / static_cast<double>(step - seen_step_));
    if (step_seconds_.size() > kTimedSteps) step_seconds_.pop_front();
  }
  seen_step_ = step;
  seen_step_at_ = now;
}

double Supervisor::stall_seconds() const {
  if (job_.stall_seconds > 0) return job_.stall_seconds;
  if (step_seconds_.empty()) return kPatientSeconds;  // nobody knows yet how long a step takes
  std::vector<double> sorted(step_seconds_.begin(), step_seconds_.end());
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2),
                   sorted.end());
  return std::max(kLeastStallSeconds, kStallSteps * sorted[sorted.size() / 2]);
}

// Ranks that wait for others report progress, so the silent one is the one that stalls.
void Supervisor::check_stalls() {
  const double now = now_seconds();
  if (now - last_look_ > kHeldUpSeconds) awake_since_ = now;
  last_look_ = now;
  watch_steps();
  for (const uint32_t place : group_) {
    Worker& worker = *workers_[place];
    const bool waits = worker.state == Worker::State::kParked || worker.done;
    if (worker.state == Worker::State::kEnded || waits || outcome_.error) continue;
    const RankState state = state_of(place);
    const double alive =
        std::max({static_cast<double>(state.heartbeat_ns) * 1e-9, generation_began_, awake_since_});
    const double quiet = now - alive;
    const double least = job_.stall_seconds > 0 ? job_.stall_seconds : kLeastStallSeconds;
    const bool stopped = quiet > least && worker.child.stopped();
    const bool steps =
        state.step > 0 && (state.phase == Phases::kTraining || state.phase == Phases::kEvaluating);
    const double limit = steps || worker.state == Worker::State::kFailed
                             ? stall_seconds()
                             : std::max(kPatientSeconds, stall_seconds());
    if (quiet < limit && !stopped) continue;
    read_messages(place);  // nothing that it said is lost with it
    if (worker.state == Worker::State::kEnded || outcome_.error) continue;
    lose(place, ErrorCode::kTraining,
         str_cat("the worker (pid ", worker.child.pid(), ") has made no progress for ",
                 std::round(quiet * 10) / 10, " s", last_words(place),
                 stopped
                     ? "; a signal (SIGSTOP) held it, so it was ended; `kill -CONT` in time lets "
                       "one go on"
                     : "; its device or driver hangs, or a step takes longer: see "
                       "--stall-timeout"));
  }
}

void Supervisor::check_deadlines() {
  const double now = now_seconds();
  if (stop_deadline_ != 0 && now >= stop_deadline_ && !outcome_.error) {
    const bool begun = all_ready();
    outcome_.error = Error(
        ErrorCode::kInterrupted,
        str_cat(!begun        ? "interrupted before the first step"
                : stop_twice_ ? "interrupted twice; the workers were ended"
                              : "interrupted; the workers did not stop in time and were ended",
                has_checkpoint() ? ". The last checkpoint is intact; go on with --resume" : ""));
    if (on_failure_) on_failure_(*outcome_.error);
    end_survivors();
  }
  if (kill_deadline_ != 0 && now >= kill_deadline_) end_survivors();
}

// Whatever happens, a run without results has an error.
void Supervisor::complete_outcome() {
  if (outcome_.error) return;
  for (const uint32_t place : group_) {
    if (outcome_.done[place].is_object()) continue;
    fail_run(ErrorCode::kTraining, second_hand_.empty()
                                       ? who(place) + "the worker ended without a result"
                                       : second_hand_);
    return;
  }
}

// Half-written files of workers that were killed while they wrote.
void Supervisor::remove_temporaries() const {
  for (const pid_t pid : pids_) {
    for (const std::filesystem::path& directory :
         {std::filesystem::path(job_.checkpoints), environment::cache_dir()}) {
      if (!directory.empty()) remove_temporary_files(directory, pid);
    }
  }
}

bool Supervisor::any_running() const {
  return recovering_ || std::any_of(workers_.begin(), workers_.end(), [](const auto& w) {
           return w != nullptr && w->state != Worker::State::kEnded;
         });
}

// All of the group are parked, or lost.
bool Supervisor::all_waiting() const {
  return std::all_of(group_.begin(), group_.end(), [this](uint32_t place) {
    return workers_[place]->state == Worker::State::kParked ||
           workers_[place]->state == Worker::State::kEnded;
  });
}

void Supervisor::end_survivors() {
  recovering_ = false;
  for (uint32_t place = 0; place < workers_.size(); ++place) {
    if (workers_[place] == nullptr || workers_[place]->state == Worker::State::kEnded) continue;
    workers_[place]->child.kill();
    read_messages(place);
    workers_[place]->state = Worker::State::kEnded;
  }
}

void Supervisor::wait_and_handle() {
  std::vector<ChildProcess*> children;
  std::vector<int> fds = {signals_.get()};
  for (const auto& worker : workers_) {
    const bool runs = worker != nullptr && worker->state != Worker::State::kEnded;
    children.push_back(runs ? &worker->child : nullptr);
    fds.push_back(runs && !worker->reader.at_end() ? worker->child.status_fd() : -1);
  }
  const Ready ready = wait_any(children, fds, job_.stall_seconds > 0 ? kPollMs / 4 : kPollMs);
  for (const int fd : ready.readable) {
    if (fd == signals_.get()) handle_signal();
    for (uint32_t place = 0; place < workers_.size(); ++place) {
      const bool runs = children[place] != nullptr;
      if (runs && fd == children[place]->status_fd()) read_messages(place);
    }
  }
  for (const size_t i : ready.exited) handle_exit(static_cast<uint32_t>(i));
}

RunOutcome Supervisor::run() {
  begin_generation();
  while (any_running()) {
    wait_and_handle();
    check_stalls();
    check_deadlines();
    go_on();
  }
  complete_outcome();
  remove_temporaries();
  outcome_.failures = log_.json();
  return std::move(outcome_);
}

}  // namespace netcl::app
