#include "apps/netcl_app/supervisor.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "apps/netcl_app/probe.h"
#include "core/base/environment.h"
#include "core/base/file.h"
#include "core/cl/icd.h"

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

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

}  // namespace

void block_stop_signals() {
  const sigset_t set = stop_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

struct Supervisor::Rank {
  Rank(uint32_t number_in, ChildProcess child_in)
      : number(number_in), child(std::move(child_in)), reader(child.status_fd()) {}

  uint32_t number;
  ChildProcess child;
  LineReader reader;
  double started = now_seconds();
  bool ended = false;
  bool said_error = false;
};

Supervisor::Supervisor(std::vector<WorkerPlace> places, Job job, const Dataset& train,
                       const Dataset* test, OnMessage on_message, OnFailure on_failure)
    : places_(std::move(places)),
      job_(std::move(job)),
      train_(train),
      test_(test),
      on_message_(std::move(on_message)),
      on_failure_(std::move(on_failure)),
      segment_(Segment::create(static_cast<uint32_t>(places_.size()))) {
  outcome_.done.resize(places_.size());
  outcome_.ready.resize(places_.size());
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
// workers share a CPU device, and each GPU keeps a core for the thread that feeds it.
std::vector<std::string> Supervisor::core_limits(const WorkerPlace& place) const {
  const auto gpus = std::count_if(places_.begin(), places_.end(), [](const WorkerPlace& other) {
    return other.device.type == "gpu";
  });
  if (place.device.type != "cpu" || (place.share_count < 2 && gpus == 0)) return {};
  const int64_t cores =
      (place.device.compute_units - gpus) / std::max<int64_t>(1, place.share_count);
  const std::string count = std::to_string(std::max<int64_t>(1, cores));
  return {"POCL_MAX_PTHREAD_COUNT=" + count, "POCL_CPU_MAX_CU_COUNT=" + count};
}

void Supervisor::start() {
  for (const WorkerPlace& place : places_) {
    job_.labels.push_back(place.label());
    job_.devices.push_back(place.device);
  }
  for (uint32_t r = 0; r < places_.size(); ++r) {
    const WorkerPlace& place = places_[r];
    Job job = job_;
    job.rank = r;
    job.n_ranks = static_cast<uint32_t>(places_.size());
    job.parent = ::getpid();
    job.device = place.device;
    job.share_index = place.share_index;
    job.share_count = place.share_count;
    job.label = place.label();
    job.has_test = test_ != nullptr;
    const UniqueFd text = text_to_memfd(to_json(job).dump());

    SpawnOptions options;
    options.argv = {std::filesystem::canonical("/proc/self/exe").string(), "worker"};
    std::vector<std::string> changes = only_driver(place.device.icd);
    for (const std::string& limit : core_limits(place)) changes.push_back(limit);
    options.environment = environment::with_changes(changes);
    options.status_fd = WorkerFds::kStatus;
    options.descriptors = {{segment_->fd(), WorkerFds::kSegment},
                           {train_.fd(), WorkerFds::kTrain},
                           {text.get(), WorkerFds::kJob}};
    if (test_ != nullptr) options.descriptors.push_back({test_->fd(), WorkerFds::kTest});
    ranks_.push_back(std::make_unique<Rank>(r, ChildProcess(options)));
  }
}

std::string Supervisor::who(const Rank& rank) const {
  return str_cat("rank ", rank.number, " (", places_[rank.number].label(), "): ");
}

void Supervisor::fail_run(ErrorCode code, const std::string& text) {
  if (!outcome_.error) {
    outcome_.error = Error(code, text);
    if (on_failure_) on_failure_(*outcome_.error);
  }
  segment_->abort(outcome_.error->message());
  if (kill_deadline_ == 0) kill_deadline_ = now_seconds() + kSurvivorSeconds;
}

void Supervisor::handle_message(Rank& rank, const Json& message) {
  const std::string type = message.at("type").get<std::string>();
  if (type == "done") outcome_.done[rank.number] = message;
  if (type == "ready") outcome_.ready[rank.number] = message;
  if (type != "error") return on_message_(rank.number, message);
  rank.said_error = true;
  const int code = message.at("code").get<int>();
  const ErrorCode codes[] = {ErrorCode::kUsage,    ErrorCode::kDevice,     ErrorCode::kPlugin,
                             ErrorCode::kData,     ErrorCode::kTraining,   ErrorCode::kCheckpoint,
                             ErrorCode::kInternal, ErrorCode::kInterrupted};
  const auto* found = std::find_if(std::begin(codes), std::end(codes),
                                   [&](ErrorCode c) { return exit_code(c) == code; });
  const std::string text = who(rank) + message.at("message").get<std::string>();
  // A rank that failed because of another one has nothing to add.
  if (message.at("first").get<bool>())
    return fail_run(found == std::end(codes) ? ErrorCode::kInternal : *found, text);
  if (second_hand_.empty()) second_hand_ = text;
}

void Supervisor::read_messages(Rank& rank) {
  for (const std::string& line : rank.reader.read_lines()) {
    // A worker that was killed may leave half a line.
    const Json message = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!message.is_object()) continue;
    try {
      handle_message(rank, message);
    } catch (const Error& e) {  // writing what it says failed: a full disk
      fail_run(e.code(), e.message());
    }
  }
}

// Where a dead or silent rank was, and how far the others have come.
std::string Supervisor::last_words(const Rank& rank) const {
  const RankState state = segment_->state(rank.number);
  std::string out = str_cat(" while ", state.phase.empty() ? "starting" : state.phase);
  if (state.step > 0) out += str_cat(", after step ", state.step);
  const CollectiveNote& mine = state.collective;
  if (mine.sequence > 0)
    out += str_cat("; its last collective was \"", mine.name, "\" number ", mine.sequence);
  for (const auto& other : ranks_) {
    const CollectiveNote theirs = segment_->state(other->number).collective;
    if (other->number == rank.number || theirs.sequence <= mine.sequence) continue;
    return out + str_cat("; rank ", other->number, " waits in number ", theirs.sequence);
  }
  return out;
}

bool Supervisor::has_checkpoint() const {
  std::error_code error;
  return !job_.checkpoints.empty() &&
         std::filesystem::exists(std::filesystem::path(job_.checkpoints) / "last.safetensors",
                                 error);
}

void Supervisor::handle_exit(Rank& rank) {
  const auto status = rank.child.exit_status();
  if (!status || rank.ended) return;
  read_messages(rank);
  rank.ended = true;
  if (rank.said_error || (status->success() && outcome_.done[rank.number].is_object())) return;
  const bool killed = status->by_signal && status->value == SIGKILL;
  fail_run(
      ErrorCode::kTraining,
      str_cat(who(rank), "the worker (pid ", rank.child.pid(), ") died", last_words(rank), ": ",
              status->describe(),
              killed
                  ? "; the system kills when memory is short: see its log, or use a smaller batch"
                  : "",
              has_checkpoint() ? ". The last checkpoint is intact; go on with --resume" : ""));
}

void Supervisor::handle_signal() {
  signalfd_siginfo info{};
  if (::read(signals_.get(), &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) return;
  if (stop_deadline_ == 0 && all_ready()) {
    segment_->request_stop();
    stop_deadline_ = now_seconds() + kStopSeconds;
  } else {  // a second one, or before there is anything to save
    stop_twice_ = stop_deadline_ != 0;
    stop_deadline_ = now_seconds();
  }
}

bool Supervisor::all_ready() const {
  return std::all_of(outcome_.ready.begin(), outcome_.ready.end(),
                     [](const Json& r) { return r.is_object(); });
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
  for (const auto& rank : ranks_) {
    if (rank->ended || outcome_.error) continue;
    const RankState state = segment_->state(rank->number);
    const double alive =
        std::max({static_cast<double>(state.heartbeat_ns) * 1e-9, rank->started, awake_since_});
    const double quiet = now - alive;
    const double least = job_.stall_seconds > 0 ? job_.stall_seconds : kLeastStallSeconds;
    const bool stopped = quiet > least && rank->child.stopped();
    const bool steps =
        state.step > 0 && (state.phase == Phases::kTraining || state.phase == Phases::kEvaluating);
    const double limit = steps ? stall_seconds() : std::max(kPatientSeconds, stall_seconds());
    if (quiet < limit && !stopped) continue;
    fail_run(
        ErrorCode::kTraining,
        str_cat(who(*rank), "the worker (pid ", rank->child.pid(), ") has made no progress for ",
                std::round(quiet * 10) / 10, " s", last_words(*rank),
                stopped
                    ? "; a signal (SIGSTOP) held it, so it was ended; `kill -CONT` in time lets "
                      "one go on"
                    : "; its device or driver hangs, or a step takes longer: see --stall-timeout"));
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
  for (const auto& rank : ranks_) {
    if (outcome_.done[rank->number].is_object()) continue;
    fail_run(ErrorCode::kTraining, second_hand_.empty()
                                       ? who(*rank) + "the worker ended without a result"
                                       : second_hand_);
    return;
  }
}

// Half-written files of workers that were killed while they wrote.
void Supervisor::remove_temporaries() const {
  for (const auto& rank : ranks_) {
    for (const std::filesystem::path& directory :
         {std::filesystem::path(job_.checkpoints), environment::cache_dir()}) {
      if (!directory.empty()) remove_temporary_files(directory, rank->child.pid());
    }
  }
}

bool Supervisor::any_running() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& r) { return !r->ended; });
}

void Supervisor::end_survivors() {
  for (const auto& rank : ranks_) {
    if (rank->ended) continue;
    rank->child.kill();
    read_messages(*rank);
    rank->ended = true;
  }
}

RunOutcome Supervisor::run() {
  start();
  awake_since_ = last_look_ = now_seconds();
  while (any_running()) {
    std::vector<ChildProcess*> children;
    std::vector<int> fds = {signals_.get()};
    for (const auto& rank : ranks_) {
      children.push_back(rank->ended ? nullptr : &rank->child);
      fds.push_back(rank->ended || rank->reader.at_end() ? -1 : rank->child.status_fd());
    }
    const Ready ready = wait_any(children, fds, job_.stall_seconds > 0 ? kPollMs / 4 : kPollMs);
    for (const int fd : ready.readable) {
      if (fd == signals_.get()) handle_signal();
      for (const auto& rank : ranks_) {
        if (fd == rank->child.status_fd() && !rank->ended) read_messages(*rank);
      }
    }
    for (const size_t i : ready.exited) handle_exit(*ranks_[i]);
    check_stalls();
    check_deadlines();
  }
  complete_outcome();
  if (outcome_.error) remove_temporaries();
  return std::move(outcome_);
}

}  // namespace netcl::app
