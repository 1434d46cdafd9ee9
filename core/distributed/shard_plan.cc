#include "core/distributed/shard_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/batches.h"

namespace netcl {

namespace {

std::vector<double> normalised(std::vector<double> weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& w : weights) w /= sum;
  return weights;
}

}  // namespace

ShardPlan::ShardPlan(const std::string& text, size_t n_ranks) {
  auto_ = text == "auto";
  if (auto_ || text == "even") {
    weights_ = normalised(std::vector<double>(n_ranks, 1.0));
    return;
  }
  for (const std::string& part : split(text, ',')) {
    char* end = nullptr;
    const double weight = std::strtod(part.c_str(), &end);
    NETCL_CHECK(!part.empty() && *end == '\0' && std::isfinite(weight) && weight >= 0,
                ErrorCode::kUsage, "--shard ", text,
                ": expected auto, even or numbers such as 3,1; \"", part, "\" is none");
    weights_.push_back(weight);
  }
  NETCL_CHECK(weights_.size() == n_ranks, ErrorCode::kUsage, "--shard ", text, ": ",
              weights_.size(), " weights for ", n_ranks, " workers; give one weight a worker");
  NETCL_CHECK(std::any_of(weights_.begin(), weights_.end(), [](double w) { return w > 0; }),
              ErrorCode::kUsage, "--shard ", text, ": at least one weight must be above 0");
  weights_ = normalised(weights_);
}

std::vector<int64_t> ShardPlan::counts(int64_t batch) const {
  const bool even =
      std::all_of(weights_.begin(), weights_.end(), [&](double w) { return w == weights_[0]; });
  return even ? even_counts(batch, static_cast<int64_t>(weights_.size()))
              : shard_counts(batch, weights_);
}

bool ShardPlan::adapt(const std::vector<double>& seconds_per_sample, double max_change) {
  if (!auto_ || weights_.size() < 2) return false;
  const auto measured = [&](size_t i) { return seconds_per_sample[i] > 0; };
  std::vector<double> wanted = weights_;
  double old_time = 0, share = 0, speed = 0;  // share: of the measured ranks together
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (!measured(i)) continue;
    share += weights_[i];
    speed += 1.0 / seconds_per_sample[i];
    old_time = std::max(old_time, weights_[i] * seconds_per_sample[i]);
  }
  if (old_time == 0) return false;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (measured(i)) wanted[i] = share / (seconds_per_sample[i] * speed);
  }
  double new_time = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (measured(i)) new_time = std::max(new_time, wanted[i] * seconds_per_sample[i]);
  }
  if (old_time < new_time * (1 + kLeastGain)) return false;
  for (size_t i = 0; i < wanted.size(); ++i) {
    wanted[i] =
        std::clamp(wanted[i], weights_[i] * (1 - max_change), weights_[i] * (1 + max_change));
  }
  weights_ = normalised(wanted);
  return true;
}

}  // namespace netcl
