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

void ShardPlan::set_weights(std::vector<double> weights) {
  const bool good = weights.size() == weights_.size() &&
                    std::all_of(weights.begin(), weights.end(),
                                [](double w) { return std::isfinite(w) && w >= 0; }) &&
                    std::any_of(weights.begin(), weights.end(), [](double w) { return w > 0; });
  NETCL_CHECK(auto_ && good, ErrorCode::kInternal, "a plan of ", weights_.size(),
              " ranks cannot take ", weights.size(), " weights");
  weights_ = normalised(std::move(weights));
}

}  // namespace netcl
