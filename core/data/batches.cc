#include "core/data/batches.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/base/error.h"

namespace netcl {
namespace {

constexpr uint64_t kGamma = 0x9e3779b97f4a7c15ull;  // SplitMix64's increment

uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// floor(bits * bound / 2^64), from 32-bit halves: no 128-bit type needed.
uint64_t scale_to(uint64_t bits, uint64_t bound) {
  const uint64_t a = bits >> 32, b = bits & 0xffffffffu;
  const uint64_t c = bound >> 32, d = bound & 0xffffffffu;
  const uint64_t middle = a * d + ((b * d) >> 32);
  const uint64_t low = b * c + (middle & 0xffffffffu);
  return a * c + (middle >> 32) + (low >> 32);
}

}  // namespace

uint64_t random_bits(uint64_t seed, uint64_t stream, uint64_t index) {
  const uint64_t key = mix(mix(seed + kGamma) + (stream + 1) * kGamma);
  return mix(key + (index + 1) * kGamma);
}

std::vector<int64_t> shuffled(int64_t n, uint64_t seed, uint64_t stream) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (size_t i = order.size(); i-- > 1;) {
    std::swap(order[i], order[scale_to(random_bits(seed, stream, i), i + 1)]);
  }
  return order;
}

BatchPlan::BatchPlan(int64_t num_samples, int64_t batch_size, uint64_t seed, bool shuffle,
                     int64_t draws)
    : num_samples_(num_samples),
      batch_size_(batch_size),
      seed_(seed),
      shuffle_(shuffle),
      draws_(draws) {
  NETCL_CHECK(num_samples >= 1, ErrorCode::kUsage, "batch plan: ", num_samples,
              " samples; expected at least 1");
  NETCL_CHECK(batch_size >= 1, ErrorCode::kUsage, "batch plan: batch size ", batch_size,
              "; expected at least 1");
}

std::vector<int64_t> BatchPlan::order(int64_t epoch) const {
  if (draws_ > 0) {
    std::vector<int64_t> drawn(static_cast<size_t>(draws_));
    for (size_t i = 0; i < drawn.size(); ++i) {
      const uint64_t bits = random_bits(seed_, static_cast<uint64_t>(epoch), i);
      drawn[i] = static_cast<int64_t>(scale_to(bits, static_cast<uint64_t>(num_samples_)));
    }
    return drawn;
  }
  if (shuffle_) return shuffled(num_samples_, seed_, static_cast<uint64_t>(epoch));
  std::vector<int64_t> plain(static_cast<size_t>(num_samples_));
  std::iota(plain.begin(), plain.end(), int64_t{0});
  return plain;
}

IndexRange BatchPlan::range(int64_t step) const {
  NETCL_CHECK(step >= 0 && step < steps_per_epoch(), ErrorCode::kInternal, "step ", step,
              " of an epoch of ", steps_per_epoch());
  const int64_t first = step * batch_size_;
  return {first, std::min(batch_size_, num_samples() - first)};
}

std::vector<int64_t> BatchPlan::indices(int64_t epoch, int64_t step) {
  if (epoch != kept_epoch_) {
    kept_order_ = order(epoch);
    kept_epoch_ = epoch;
  }
  const IndexRange part = range(step);
  return {kept_order_.begin() + part.first, kept_order_.begin() + part.first + part.count};
}

std::vector<int64_t> shard_counts(int64_t batch, const std::vector<double>& weights) {
  NETCL_CHECK(!weights.empty() && batch >= 0, ErrorCode::kUsage, "shards: ", batch,
              " samples over ", weights.size(), " weights; expected at least one weight");
  double sum = 0.0;
  for (size_t i = 0; i < weights.size(); ++i) {
    NETCL_CHECK(std::isfinite(weights[i]) && weights[i] >= 0.0, ErrorCode::kUsage,
                "shards: weight ", i, " is ", weights[i], "; expected a number of at least 0");
    sum += weights[i];
  }
  NETCL_CHECK(sum > 0.0 && std::isfinite(sum), ErrorCode::kUsage, "shards: the weights add up to ",
              sum, "; expected at least one above 0");
  std::vector<int64_t> counts(weights.size());
  std::vector<std::pair<double, size_t>> rest;  // remainder, rank; only ranks with a weight
  int64_t left = batch;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double exact = static_cast<double>(batch) * (weights[i] / sum);
    counts[i] = std::min(left, static_cast<int64_t>(std::floor(exact)));
    left -= counts[i];
    if (weights[i] > 0.0) rest.emplace_back(exact - static_cast<double>(counts[i]), i);
  }
  std::stable_sort(rest.begin(), rest.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  // Fewer are left than ranks have a remainder; the modulo covers rounding in the quotients.
  for (size_t i = 0; left > 0; i = (i + 1) % rest.size(), --left) ++counts[rest[i].second];
  return counts;
}

std::vector<int64_t> even_counts(int64_t batch, int64_t ranks) {
  NETCL_CHECK(ranks >= 1 && batch >= 0, ErrorCode::kUsage, "shards: ", batch, " samples over ",
              ranks, " ranks; expected at least one rank");
  std::vector<int64_t> counts(static_cast<size_t>(ranks), batch / ranks);
  for (int64_t i = 0; i < batch % ranks; ++i) ++counts[static_cast<size_t>(i)];
  return counts;
}

IndexRange shard_slice(const std::vector<int64_t>& counts, size_t rank) {
  NETCL_CHECK(rank < counts.size(), ErrorCode::kInternal, "rank ", rank, " of ", counts.size());
  IndexRange slice;
  for (size_t i = 0; i < rank; ++i) slice.first += counts[i];
  slice.count = counts[rank];
  return slice;
}

void fill_batch(const Dataset& dataset, const int64_t* indices, size_t count, void* x,
                void* labels) {
  const size_t x_bytes = dataset.input_bytes(), label_bytes = dataset.label_bytes();
  for (size_t i = 0; i < count; ++i) {
    dataset.read_input(indices[i], static_cast<char*>(x) + i * x_bytes);
    dataset.read_label(indices[i], static_cast<char*>(labels) + i * label_bytes);
  }
}

}  // namespace netcl
