// How a supervisor forms the run's groups: after a failure, or by the workers' own wish.
#include <algorithm>
#include <cmath>

#include "apps/netcl_app/supervisor.h"
#include "core/base/clock.h"
#include "core/base/text.h"

namespace netcl::app {

namespace {

constexpr double kSuspectSeconds = 0.5;  // for a lost worker to explain another one's error

}  // namespace

void Supervisor::go_on() {
  if (!snapshots_ || outcome_.error) return;
  const bool waiting = all_waiting();
  if (waiting && !recovering_ && all_regroup()) return regroup();
  if (waiting && !job_.survives) return end_spares();
  if (!job_.survives) return;
  if (recovering_ && last_failure_) {
    if (waiting) next_generation();
    return;
  }
  if (suspect_ && (waiting || now_seconds() > suspect_at_ + kSuspectSeconds))
    return fail_run(suspect_->code(), suspect_->message());
  if (!waiting) return;
  const bool done = std::all_of(group_.begin(), group_.end(),
                                [this](uint32_t place) { return workers_[place]->done; });
  if (!done) return complete_outcome();
  release_parked();
  end_spares();
}

// They hold nothing that is needed, and one that a signal has stopped would not end by itself.
void Supervisor::end_spares() {
  for (uint32_t place = 0; place < workers_.size(); ++place) {
    if (in_group(place) || workers_[place] == nullptr) continue;
    if (workers_[place]->state == Worker::State::kEnded) continue;
    workers_[place]->released = true;
    workers_[place]->child.kill();
    workers_[place]->state = Worker::State::kEnded;
  }
}

void Supervisor::release_parked() {
  for (const auto& worker : workers_) {
    if (worker != nullptr && worker->state == Worker::State::kParked) worker->release();
  }
}

bool Supervisor::all_regroup() const {
  return std::all_of(group_.begin(), group_.end(), [this](uint32_t place) {
    const bool waits = workers_[place]->state == Worker::State::kParked || leaves(place);
    return waits && !workers_[place]->next_group.empty();
  });
}

bool Supervisor::leaves(uint32_t place) const {
  const std::vector<uint32_t>& next = workers_[place]->next_group;
  return !next.empty() && std::find(next.begin(), next.end(), place) == next.end();
}

// Workers that leave stay parked, and may come back. All want the same.
void Supervisor::regroup() {
  group_ = std::vector<uint32_t>(workers_[group_[0]]->next_group);
  for (const uint32_t place : group_) {
    if (workers_[place] != nullptr && workers_[place]->state == Worker::State::kEnded)
      workers_[place].reset();
  }
  form_group();
}

bool Supervisor::in_group(uint32_t place) const {
  return std::find(group_.begin(), group_.end(), place) != group_.end();
}

void Supervisor::next_generation() {
  const Error cause = *last_failure_;
  const auto found = snapshots_->newest();
  Failure last;
  if (!log_.worth_going_on(found ? found->step : -1, &last)) {
    return fail_run(cause.code(),
                    str_cat(who(last.place), last.what, ". It failed ", FailureLog::kMostInARow,
                            " times on end without progress, so the run ends"));
  }
  std::vector<uint32_t> left;
  for (const uint32_t place : group_) {
    if (workers_[place]->state == Worker::State::kEnded) {
      best_steps_[place] = std::max(best_steps_[place], state_of(place).step);
      // What counts is what it had done up to where the others go on.
      for (const Json& account : accounts_[place]) {
        if (found && account.at("step") == found->step) outcome_.done[place] = account;
      }
      workers_[place].reset();
    }
    if (workers_[place] != nullptr || policy_ == FailurePolicy::kRestart) left.push_back(place);
  }
  if (left.empty()) {  // those that the group had left out
    for (uint32_t place = 0; place < places_.size(); ++place) {
      if (workers_[place] != nullptr && workers_[place]->state == Worker::State::kParked)
        left.push_back(place);
    }
  }
  if (left.empty()) {
    const std::string text = cause.message() + "; no worker is left to continue with";
    recovering_ = false;
    outcome_.error = Error(cause.code(), text);
    if (on_failure_) on_failure_(*outcome_.error);
    return;
  }
  group_ = std::move(left);
  form_group();
}

void Supervisor::form_group() {
  const auto found = snapshots_->newest();
  ++job_.generation;
  job_.snapshot = found ? static_cast<int>(found->slot) : -1;
  resume_step_ = found ? found->step : -1;
  begin_generation();
}

void Supervisor::end_of_recovery() {
  if (!recovering_ || last_failure_ || !all_ready()) return;
  recovering_ = false;
  const bool restart = policy_ == FailurePolicy::kRestart;
  log_.recovered(now_seconds(), restart ? "restarted" : "continued");
  const size_t workers = job_.members.empty() ? group_.size() : job_.members.size();
  say(str_cat(
      "training goes on ",
      resume_step_ < 0 ? std::string("from the start") : str_cat("after step ", resume_step_),
      " on ", workers, workers == 1 ? " worker" : " workers", ", ",
      std::round(log_.latest_recovery_ms()), " ms after the failure"));
}

}  // namespace netcl::app
