#include "core/distributed/group_choice.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"

namespace netcl {

namespace {

// What is measured of a step, "12.3 ms".
std::string with_and_without(const Departure& of) {
  return str_cat("with it in the group a step takes ", milliseconds(of.seconds_with), ", without ",
                 milliseconds(of.seconds_without));
}

}  // namespace

GroupChoice::GroupChoice(std::vector<Departure> departures, const std::vector<std::string>& present)
    : departures_(std::move(departures)) {
  for (Departure& each : departures_) {
    if (std::find(present.begin(), present.end(), each.name) != present.end())
      each.state = Departure::State::kBack;
  }
}

std::vector<double> GroupChoice::measured_without(const std::string& name) const {
  std::vector<double> out;
  for (const Departure& past : departures_) {
    if (past.name == name) out.push_back(past.seconds_without);
  }
  return out;
}

std::optional<GroupChoice::Regroup> GroupChoice::end_trial(Departure& trial,
                                                           const GroupMeasure& now,
                                                           std::string* note) {
  trial.seconds_without = now.step_seconds;
  if (trial.seconds_without <= trial.seconds_with * (1 + kNoise)) {
    trial.state = Departure::State::kAway;
    *note = str_cat(trial.name, " stays out of the group: ", with_and_without(trial));
    return std::nullopt;
  }
  trial.state = Departure::State::kBack;
  Regroup out;
  double total = 0, speed = 0;
  for (size_t i = 0; i < now.names.size(); ++i) {
    const double alone = now.costs[i].line.at(static_cast<double>(now.pass_size));
    out.shares[now.names[i]] = static_cast<double>(now.rows[i]);
    total += static_cast<double>(now.rows[i]);
    if (alone > 0) speed += static_cast<double>(now.batch_size) / alone;
  }
  if (speed <= 0) speed = static_cast<double>(now.batch_size) / now.step_seconds;
  out.shares[trial.name] = total * trial.solo_samples_per_second / speed;
  out.note = str_cat(trial.name, " comes back into the group: ", with_and_without(trial));
  return out;
}

std::optional<GroupChoice::Regroup> GroupChoice::look(const GroupMeasure& now, int64_t steps_left,
                                                      std::string* note) {
  if (!now.settled || now.step_seconds <= 0) return std::nullopt;
  if (!departures_.empty() && departures_.back().state == Departure::State::kOnTrial)
    return end_trial(departures_.back(), now, note);
  if (now.names.size() < 2) return std::nullopt;
  const auto left = static_cast<double>(steps_left);
  // Nothing is added up by a rank that is alone.
  const double exposed = now.names.size() == 2 ? 0 : now.exposed_seconds;
  std::optional<size_t> leaves;
  std::vector<int64_t> rows;
  double best = 0;
  for (size_t i = 0; i < now.names.size(); ++i) {
    const std::vector<double> measured = measured_without(now.names[i]);
    if (measured.size() >= kMostDepartures) continue;
    std::vector<RankCost> costs = now.costs;
    // Also those without rows: they may be what helps.
    for (RankCost& cost : costs) cost.takes_part = cost.line.per_row > 0 || cost.line.fixed > 0;
    costs[i].takes_part = false;
    std::vector<int64_t> others = equal_finish_rows(costs, now.pass_size);
    if (others.empty()) continue;
    double gain = now.step_seconds - finish_seconds(costs, others) - exposed;
    // Of one without rows no fit tells what its presence costs: at most what nothing else explains.
    const bool idle = now.rows[i] == 0;
    const bool long_run = now.step_seconds * left >= kWorthALook;
    if (idle && exposed >= kLargePart * now.step_seconds) gain = std::max(gain, exposed);
    // What was measured is better than any fit.
    if (!measured.empty() && measured.back() > 0) gain = now.step_seconds - measured.back();
    const bool saves = gain >= kLeastGain * now.step_seconds && gain * left >= kLeastSaved;
    if (!saves && !(idle && long_run && measured.empty())) continue;
    if (leaves && gain <= best) continue;
    best = gain;
    leaves = i;
    rows = std::move(others);
  }
  if (!leaves) return std::nullopt;
  Departure departure;
  departure.name = now.names[*leaves];
  departure.seconds_with = now.step_seconds;
  const double alone = now.costs[*leaves].line.at(static_cast<double>(now.pass_size));
  if (alone > 0) departure.solo_samples_per_second = static_cast<double>(now.batch_size) / alone;
  departures_.push_back(departure);
  Regroup out;
  for (size_t i = 0; i < now.names.size(); ++i) {
    if (i != *leaves) out.shares[now.names[i]] = static_cast<double>(rows[i]);
  }
  out.note =
      str_cat("the run goes on without ", departure.name,
              " to see whether that is faster: a step takes ", milliseconds(departure.seconds_with),
              ", ", milliseconds(std::max(0.0, departure.seconds_with - best)), " expected");
  return out;
}

void GroupChoice::complete(ShardAccount& account) const {
  for (const Departure& past : departures_) {
    if (past.state == Departure::State::kBack) continue;
    ShardAccount::Rank rank;
    rank.name = past.name;
    rank.solo_samples_per_second = past.solo_samples_per_second;
    rank.left_out = true;
    if (past.seconds_without > 0)
      rank.change_without = past.seconds_with / past.seconds_without - 1;
    account.ranks.push_back(rank);
  }
}

}  // namespace netcl
