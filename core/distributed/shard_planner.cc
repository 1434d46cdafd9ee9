#include "core/distributed/shard_planner.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/batches.h"

namespace netcl {

namespace {

// Steps that are looked at before something is decided: at least so many, and where steps are short
// as many as take kLeastSeconds, so that one hiccup of the machine decides nothing.
constexpr int64_t kFirstSteps = 2, kSettlingSteps = 3, kSpeedSteps = 3, kTrialSteps = 8;
constexpr double kLeastSeconds = 0.015;
constexpr int64_t kMostSteps = 25;
constexpr int64_t kRefitSteps = 10;
// Of a rank that is alone and waits for nobody: so many steps are enqueued faster than they run.
constexpr int64_t kInFlightSteps = 16, kAloneSteps = 32;
constexpr int64_t kSettlings = 2;  // at most, after a first plan
// Two changes of speed within so many steps: the next must last longer to count.
constexpr int64_t kCalmSteps = 100, kMostPatience = 8;
constexpr size_t kKeptSteps = 64;

std::vector<double> copy_of(const std::deque<double>& values) {
  return {values.begin(), values.end()};
}

void push(std::deque<double>& values, double value, size_t most) {
  values.push_back(value);
  while (values.size() > most) values.pop_front();
}

}  // namespace

ShardPlanner::ShardPlanner(ShardPlannerOptions options, ShardPlan& plan)
    : options_(std::move(options)),
      n_(plan.weights().size()),
      pass_size_((options_.batch_size + options_.passes - 1) / options_.passes),
      adapts_(plan.is_auto() && n_ > 1),
      rows_(plan.counts(pass_size_)),
      fits_(n_),
      left_out_(n_, false),
      tried_(n_, false),
      seconds_without_(n_, 0.0),
      seconds_with_(n_, 0.0),
      calm_(kCalmSteps),
      ratios_(n_) {
  NETCL_CHECK(options_.names.size() == n_ && options_.limits.size() == n_, ErrorCode::kInternal,
              "a planner of ", n_, " ranks needs a name and limits for each");
  if (n_ == 1) skip_ = kInFlightSteps;
  if (!adapts_) return;
  const std::vector<int64_t> given = rows_;
  // Only what has rows is measured.
  for (size_t i = 0; i < n_; ++i) {
    const auto largest = std::max_element(rows_.begin(), rows_.end());
    if (rows_[i] > 0 || plan.weights()[i] <= 0 || *largest < 2) continue;
    --*largest;
    ++rows_[i];
  }
  bool all_fit = true;
  for (size_t i = 0; i < n_; ++i) all_fit = all_fit && rows_[i] <= options_.limits[i].max_rows;
  if (!all_fit) {
    std::vector<RankCost> ranks;
    for (size_t i = 0; i < n_; ++i) {
      const auto rows = static_cast<double>(rows_[i]);
      ranks.push_back({{0, rows > 0 ? 1 / rows : 0}, options_.limits[i], rows > 0});
    }
    rows_ = equal_finish_rows(ranks, pass_size_);
    NETCL_CHECK(!rows_.empty(), ErrorCode::kDevice, "a batch of ", options_.batch_size,
                " samples does not fit into the memory of ", join(options_.names, ", "),
                " together; lower batch_size, raise accumulate, or add devices");
  }
  if (rows_ == given) return;
  plan.set_weights(change_to(rows_, Stage::kFirst).weights);
  skip_ = 1;
}

int64_t ShardPlanner::enough(int64_t least) const {
  const double typical = lower_median(copy_of(step_seconds_));
  if (typical <= 0) return least;
  const auto by_time = static_cast<int64_t>(std::ceil(kLeastSeconds / typical));
  return std::clamp(by_time, least, std::max(least, kMostSteps));
}

// Over the rows of a pass; a step has several.
std::vector<RankCost> ShardPlanner::costs() const {
  std::vector<RankCost> out;
  for (size_t i = 0; i < n_; ++i) {
    const CostLine& line = fits_[i].line();
    out.push_back({{line.fixed, line.per_row * static_cast<double>(options_.passes)},
                   options_.limits[i],
                   fits_[i].measured() && !left_out_[i]});
  }
  return out;
}

std::vector<RankCost> ShardPlanner::costs_without(const std::vector<bool>& ranks) const {
  std::vector<RankCost> out = costs();
  for (size_t i = 0; i < n_; ++i) out[i].takes_part = out[i].takes_part && !ranks[i];
  return out;
}

bool ShardPlanner::is_full(const std::vector<StepTime>& times) const {
  int64_t total = 0;
  for (const StepTime& time : times) total += time.rows;
  return total == options_.batch_size;
}

void ShardPlanner::take(const std::vector<StepTime>& times) {
  const bool full = is_full(times);
  double longest = 0;
  for (size_t i = 0; i < n_; ++i) {
    if (times[i].rows <= 0 || times[i].busy_seconds <= 0) continue;
    fits_[i].add(times[i].rows, times[i].busy_seconds);
    longest = std::max(longest, times[i].busy_seconds);
    const double expected = fits_[i].line().at(static_cast<double>(times[i].rows));
    if (full && expected > 0) {
      push(ratios_[i], times[i].busy_seconds / expected, kMostSteps * kMostPatience);
    }
  }
  if (!full) return;
  ++count_;
  ++calm_;
  if (times[0].step_seconds <= 0) return;
  push(step_seconds_, times[0].step_seconds, kKeptSteps);
  const double rest = n_ == 1 ? 0 : times[0].step_seconds - longest;  // alone, nothing is added up
  push(exposed_, std::max(0.0, rest), kKeptSteps);
}

std::optional<ShardPlanner::Change> ShardPlanner::observe(const std::vector<StepTime>& times) {
  if (skip_ > 0) {
    --skip_;
    return std::nullopt;
  }
  take(times);
  if (!adapts_ || !is_full(times)) return std::nullopt;
  switch (stage_) {
    case Stage::kFirst:
      return count_ < enough(kFirstSteps) ? std::nullopt : new_plan();
    case Stage::kSettling:
      return count_ < enough(kSettlingSteps) ? std::nullopt : new_plan();
    case Stage::kTrial:
      return count_ < enough(kTrialSteps) ? std::nullopt : end_trial();
    case Stage::kSteady:
      break;
  }
  if (speed_changed()) return new_plan();
  if (count_ % kRefitSteps == 0) {
    for (CostFit& fit : fits_) fit.refit();  // the first plans came from few steps
  }
  if (auto change = try_without_one()) return change;
  return count_ < kWindow ? std::nullopt : steady_plan();
}

void ShardPlanner::begin(Stage stage) {
  stage_ = stage;
  count_ = 0;
  for (auto& ratios : ratios_) ratios.clear();
}

ShardPlanner::Change ShardPlanner::change_to(std::vector<int64_t> rows, Stage stage) {
  begin(stage);
  rows_ = std::move(rows);
  if (!step_seconds_.empty()) {
    before_ = {lower_median(copy_of(step_seconds_)), lower_median(copy_of(exposed_))};
  }
  step_seconds_.clear();
  exposed_.clear();
  skip_ = 2;  // the step under way has the old plan, the next one may compile
  Change out;
  std::vector<std::string> shares;
  for (size_t i = 0; i < n_; ++i) {
    out.weights.push_back(static_cast<double>(rows_[i]));
    const double share = 100 * out.weights[i] / static_cast<double>(pass_size_);
    shares.push_back(str_cat(options_.names[i], " ", std::round(share * 10) / 10, " %"));
  }
  out.note = "shards by measured speed: " + join(shares, ", ");
  return out;
}

// A rank that no longer keeps to its fit. True if there is one; its fit then has its new speed.
bool ShardPlanner::speed_changed() {
  const auto steps = static_cast<size_t>(enough(kSpeedSteps) * patience_);
  bool changed = false;
  for (size_t i = 0; i < n_; ++i) {
    if (ratios_[i].size() < steps) continue;
    const std::vector<double> last(ratios_[i].end() - static_cast<std::ptrdiff_t>(steps),
                                   ratios_[i].end());
    const auto [least, most] = std::minmax_element(last.begin(), last.end());
    if (*least<kNewSpeed&& * most> 1 / kNewSpeed) continue;
    fits_[i].rescale(lower_median(last));
    changed = true;
  }
  if (!changed) return false;
  patience_ = calm_ < kCalmSteps ? std::min(patience_ * 2, kMostPatience)
                                 : std::max<int64_t>(patience_ / 2, 1);
  calm_ = 0;
  settled_ = 0;
  // What was worse than nothing at the old speeds may not be so now.
  left_out_.assign(n_, false);
  tried_.assign(n_, false);
  all_tried_ = false;
  return true;
}

std::optional<ShardPlanner::Change> ShardPlanner::new_plan() {
  for (CostFit& fit : fits_) fit.refit();
  const std::vector<RankCost> ranks = costs();
  std::vector<int64_t> wanted = equal_finish_rows(ranks, pass_size_);
  if (wanted.empty() ||
      finish_seconds(ranks, rows_) <= finish_seconds(ranks, wanted) * (1 + kLeastGain)) {
    begin(Stage::kSteady);
    return std::nullopt;
  }
  std::vector<bool> without(n_);
  for (size_t i = 0; i < n_; ++i) without[i] = rows_[i] > 0 && wanted[i] == 0;
  if (std::any_of(without.begin(), without.end(), [](bool b) { return b; }))
    return begin_trial(without, wanted);
  return change_to(std::move(wanted), settled_++ < kSettlings ? Stage::kSettling : Stage::kSteady);
}

std::optional<ShardPlanner::Change> ShardPlanner::steady_plan() {
  double noise = 0;
  for (size_t i = 0; i < n_; ++i) {
    fits_[i].refit();
    if (rows_[i] > 0) noise = std::hypot(noise, fits_[i].noise());
  }
  begin(Stage::kSteady);
  const std::vector<RankCost> ranks = costs();
  const std::vector<int64_t> wanted = equal_finish_rows(ranks, pass_size_);
  const double gain = std::max(kLeastGain, kGainByNoise * noise);
  if (wanted.empty() ||
      finish_seconds(ranks, rows_) <= finish_seconds(ranks, wanted) * (1 + gain)) {
    return std::nullopt;
  }
  // On the straight way there, as far as no share changes by more than it may (or one row).
  double part = 1;
  for (size_t i = 0; i < n_; ++i) {
    const auto change = static_cast<double>(std::abs(wanted[i] - rows_[i]));
    const double most = std::max(1.0, kMaxChange * static_cast<double>(rows_[i]));
    if (change > most) part = std::min(part, most / change);
  }
  std::vector<double> between;
  for (size_t i = 0; i < n_; ++i) {
    between.push_back(static_cast<double>(rows_[i]) +
                      part * static_cast<double>(wanted[i] - rows_[i]));
  }
  std::vector<int64_t> rows = shard_counts(pass_size_, between);
  for (size_t i = 0; i < n_; ++i) {
    if (rows[i] > options_.limits[i].max_rows) return std::nullopt;
  }
  return change_to(std::move(rows), Stage::kSteady);
}

std::optional<ShardPlanner::Change> ShardPlanner::begin_trial(const std::vector<bool>& without,
                                                              const std::vector<int64_t>& rows) {
  trial_ = {without, rows_, lower_median(copy_of(step_seconds_))};
  std::vector<std::string> names;
  for (size_t i = 0; i < n_; ++i) {
    if (!without[i]) continue;
    tried_[i] = true;
    names.push_back(options_.names[i]);
  }
  Change out = change_to(rows, Stage::kTrial);
  out.note = str_cat("a few steps without ", join(names, ", "), " show whether they are shorter");
  return out;
}

// The rank that matters least, if leaving it out costs so little that what no fit knows (the work
// for the sums, cores that it takes from others) may be more.
std::optional<ShardPlanner::Change> ShardPlanner::try_without_one() {
  if (all_tried_ || count_ < enough(kTrialSteps)) return std::nullopt;
  const double exposed = lower_median(copy_of(exposed_));
  const double with = finish_seconds(costs(), rows_) + exposed;
  std::vector<int64_t> best_rows;
  std::vector<bool> best;
  double shortest = kWorthKeeping * with;
  for (size_t i = 0; i < n_; ++i) {
    if (rows_[i] == 0 || tried_[i]) continue;
    std::vector<bool> without(n_, false);
    without[i] = true;
    const std::vector<RankCost> ranks = costs_without(without);
    const std::vector<int64_t> rows = equal_finish_rows(ranks, pass_size_);
    if (rows.empty() || finish_seconds(ranks, rows) + exposed >= shortest) continue;
    shortest = finish_seconds(ranks, rows) + exposed;
    best = without;
    best_rows = rows;
  }
  all_tried_ = best.empty();
  if (best.empty()) return std::nullopt;
  return begin_trial(best, best_rows);
}

std::optional<ShardPlanner::Change> ShardPlanner::end_trial() {
  const double seconds = lower_median(copy_of(step_seconds_));
  const bool better = trial_.seconds <= 0 || seconds <= trial_.seconds * (1 - kTrialGain);
  std::vector<std::string> names;
  for (size_t i = 0; i < n_; ++i) {
    if (!trial_.without[i]) continue;
    names.push_back(options_.names[i]);
    seconds_with_[i] = trial_.seconds;
    seconds_without_[i] = seconds;
    left_out_[i] = better;
  }
  const char* verb = names.size() > 1 ? (better ? " are left out" : " stay")
                                      : (better ? " is left out" : " stays");
  const std::string text =
      str_cat(join(names, ", "), verb, ": with it a step takes ", milliseconds(trial_.seconds),
              ", without ", milliseconds(seconds));
  Change out;
  if (better) {
    begin(settled_++ < kSettlings ? Stage::kSettling : Stage::kSteady);
  } else {
    out = change_to(trial_.rows, Stage::kSteady);
  }
  out.note = text;
  return out;
}

GroupMeasure ShardPlanner::measure() const {
  GroupMeasure out;
  const bool steady = n_ == 1 || (stage_ == Stage::kSteady && all_tried_);
  const int64_t least = n_ == 1 ? kAloneSteps : enough(kTrialSteps);
  out.settled = steady && count_ >= least && count_ % kTrialSteps == 0;
  if (!out.settled) return out;
  out.step_seconds = lower_median(copy_of(step_seconds_));
  out.exposed_seconds = lower_median(copy_of(exposed_));
  out.batch_size = options_.batch_size;
  out.pass_size = pass_size_;
  out.names = options_.names;
  out.costs = costs();
  out.rows = rows_;
  return out;
}

ShardAccount ShardPlanner::account() const {
  ShardAccount out;
  const auto batch = static_cast<double>(options_.batch_size);
  const bool measured = !step_seconds_.empty();  // else with the plan before
  const double step = measured ? lower_median(copy_of(step_seconds_)) : before_.step_seconds;
  const double exposed = measured ? lower_median(copy_of(exposed_)) : before_.exposed;
  if (step > 0) {
    out.all_samples_per_second = batch / step;
    out.exposed = exposed / step;
  }
  ShardPlanner fitted(*this);
  for (CostFit& fit : fitted.fits_) fit.refit();
  const double with = finish_seconds(fitted.costs(), rows_) + exposed;
  for (size_t i = 0; i < n_; ++i) {
    ShardAccount::Rank rank;
    rank.name = options_.names[i];
    const double alone = fitted.fits_[i].line().at(batch);
    if (alone > 0) rank.solo_samples_per_second = batch / alone;
    if (n_ == 1) rank.solo_samples_per_second = out.all_samples_per_second;
    rank.left_out = left_out_[i];
    std::vector<bool> without(n_, false);
    without[i] = true;
    const std::vector<RankCost> ranks = fitted.costs_without(without);
    const std::vector<int64_t> rows = equal_finish_rows(ranks, pass_size_);
    if (left_out_[i] && seconds_with_[i] > 0) {
      rank.change_without = seconds_with_[i] / seconds_without_[i] - 1;
    } else if (rows_[i] > 0) {
      rank.change_without = rows.empty() ? -1 : with / (finish_seconds(ranks, rows) + exposed) - 1;
    }
    out.ranks.push_back(rank);
  }
  return out;
}

}  // namespace netcl
