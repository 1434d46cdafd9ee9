#include "apps/netcl_app/supervisor.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "apps/netcl_app/probe.h"
#include "core/base/environment.h"

namespace netcl::app {

namespace {

constexpr double kStopSeconds = 2;        // for an orderly stop
constexpr double kSurvivorSeconds = 1.5;  // for the others after a failure
constexpr double kStallSeconds = 60;      // without any sign of progress: set-up and long kernels included
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

struct Supervisor::Rank {
  Rank(uint32_t number_in, ChildProcess child_in)
      : number(number_in), child(std::move(child_in)), reader(child.status_fd()) {}

  uint32_t number;
  ChildProcess child;
  LineReader reader;
  bool ended = false;
  bool said_error = false;
};

Supervisor::Supervisor(std::vector<WorkerPlace> places, Job job, const Dataset& train, const Dataset* test,
                       OnMessage on_message)
    : places_(std::move(places)),
      job_(std::move(job)),
      train_(train),
      test_(test),
      on_message_(std::move(on_message)),
      segment_(Segment::create(static_cast<uint32_t>(places_.size()))) {
  outcome_.done.resize(places_.size());
  outcome_.ready.resize(places_.size());
  const sigset_t set = stop_signals();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  NETCL_CHECK(signals_.valid(), ErrorCode::kInternal, "signalfd failed");
}

Supervisor::~Supervisor() {
  const sigset_t set = stop_signals();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void Supervisor::start() {
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
    if (place.share_count > 1 && place.device.type == "cpu") {
      // PoCL makes as many threads as the machine has cores, whatever the affinity: cap them.
      const auto cores = std::max<int64_t>(1, place.device.compute_units / place.share_count);
      changes.push_back("POCL_MAX_PTHREAD_COUNT=" + std::to_string(cores));
      changes.push_back("POCL_CPU_MAX_CU_COUNT=" + std::to_string(cores));
    }
    options.environment = environment::with_changes(changes);
    options.status_fd = WorkerFds::kStatus;
    options.descriptors = {{segment_->fd(), WorkerFds::kSegment},
                           {train_.fd(), WorkerFds::kTrain},
                           {text.get(), WorkerFds::kJob}};
    if (test_ != nullptr) options.descriptors.push_back({test_->fd(), WorkerFds::kTest});
    ranks_.push_back(std::make_unique<Rank>(r, ChildProcess(options)));
  }
}

void Supervisor::fail_run(const Rank& rank, ErrorCode code, const std::string& text) {
  if (!outcome_.error) {
    const std::string who =
        places_.size() > 1 ? str_cat("rank ", rank.number, " (", places_[rank.number].label(), "): ") : "";
    outcome_.error = Error(code, who + text);
  }
  segment_->abort(outcome_.error->message());
  if (kill_deadline_ == 0) kill_deadline_ = now_seconds() + kSurvivorSeconds;
}

void Supervisor::read_messages(Rank& rank) {
  for (const std::string& line : rank.reader.read_lines()) {
    const Json message = Json::parse(line);
    const std::string type = message.at("type").get<std::string>();
    if (type == "done") outcome_.done[rank.number] = message;
    if (type == "ready") outcome_.ready[rank.number] = message;
    if (type == "error") {
      rank.said_error = true;
      const int code = message.at("code").get<int>();
      const ErrorCode codes[] = {ErrorCode::kUsage,    ErrorCode::kDevice,     ErrorCode::kPlugin,
                                 ErrorCode::kData,     ErrorCode::kTraining,   ErrorCode::kCheckpoint,
                                 ErrorCode::kInternal, ErrorCode::kInterrupted};
      const auto* found = std::find_if(std::begin(codes), std::end(codes), [&](ErrorCode c) { return exit_code(c) == code; });
      // A rank that failed because of another one has nothing to add.
      if (message.at("first").get<bool>()) fail_run(rank, *found, message.at("message").get<std::string>());
    } else {
      on_message_(rank.number, message);
    }
  }
}

void Supervisor::handle_exit(Rank& rank) {
  const auto status = rank.child.exit_status();
  if (!status || rank.ended) return;
  read_messages(rank);
  rank.ended = true;
  if (status->success() || rank.said_error) return;
  const RankState state = segment_->state(rank.number);
  const std::string where = state.step > 0 ? str_cat(" after step ", state.step) : " while " + state.phase;
  fail_run(rank, ErrorCode::kTraining,
           str_cat("the worker (pid ", rank.child.pid(), ") died", where, ": ", status->describe(),
                   state.collective.sequence > 0 ? str_cat("; its last collective was ", state.collective.name, " #",
                                                           state.collective.sequence)
                                                 : ""));
}

void Supervisor::handle_signal() {
  signalfd_siginfo info{};
  if (::read(signals_.get(), &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) return;
  if (stop_deadline_ == 0) {
    segment_->request_stop();
    stop_deadline_ = now_seconds() + kStopSeconds;
  } else {
    stop_deadline_ = now_seconds();
  }
}

void Supervisor::check_stalls() {
  const auto now_ns = static_cast<uint64_t>(now_seconds() * 1e9);
  for (const auto& rank : ranks_) {
    if (rank->ended || outcome_.error) continue;
    const RankState state = segment_->state(rank->number);
    if (state.heartbeat_ns == 0 || now_ns < state.heartbeat_ns) continue;
    const double quiet = static_cast<double>(now_ns - state.heartbeat_ns) * 1e-9;
    if (quiet < kStallSeconds) continue;
    fail_run(*rank, ErrorCode::kTraining,
             str_cat("the worker (pid ", rank->child.pid(), ") has made no progress for ", static_cast<int>(quiet),
                     " s, while ", state.phase, ", step ", state.step));
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
  while (any_running()) {
    std::vector<ChildProcess*> children;
    std::vector<int> fds = {signals_.get()};
    for (const auto& rank : ranks_) {
      children.push_back(rank->ended ? nullptr : &rank->child);
      fds.push_back(rank->ended || rank->reader.at_end() ? -1 : rank->child.status_fd());
    }
    const Ready ready = wait_any(children, fds, kPollMs);
    for (const int fd : ready.readable) {
      if (fd == signals_.get()) handle_signal();
      for (const auto& rank : ranks_) {
        if (fd == rank->child.status_fd() && !rank->ended) read_messages(*rank);
      }
    }
    for (const size_t i : ready.exited) handle_exit(*ranks_[i]);
    check_stalls();
    const double now = now_seconds();
    if (stop_deadline_ != 0 && now >= stop_deadline_ && !outcome_.error) {
      outcome_.error = Error(ErrorCode::kInterrupted, "interrupted; the workers did not stop in time and were ended");
      end_survivors();
    }
    if (kill_deadline_ != 0 && now >= kill_deadline_) end_survivors();
  }
  return std::move(outcome_);
}

}  // namespace netcl::app
