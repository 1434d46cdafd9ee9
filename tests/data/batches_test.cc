// Epoch order, batches, shards.
#include "core/data/batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/base/error.h"

namespace netcl {
namespace {

TEST(RandomBits, DependOnSeedStreamAndIndexAlone) {
  EXPECT_NE(random_bits(0, 0, 0), random_bits(0, 0, 1));
  EXPECT_NE(random_bits(0, 0, 0), random_bits(0, 1, 0));
  EXPECT_NE(random_bits(0, 0, 0), random_bits(1, 0, 0));
  // From the documented formula: if this changes, every user's shuffles and splits change.
  EXPECT_EQ(shuffled(10, 1, 0), (std::vector<int64_t>{9, 7, 4, 3, 8, 6, 5, 2, 1, 0}));
}

TEST(Shuffle, IsAPermutationThatSeedAndEpochDecide) {
  for (const int64_t n : {0, 1, 2, 3, 1000}) {
    std::vector<int64_t> order = shuffled(n, 7, 3);
    std::sort(order.begin(), order.end());
    std::vector<int64_t> plain(static_cast<size_t>(n));
    std::iota(plain.begin(), plain.end(), int64_t{0});
    EXPECT_EQ(order, plain);
  }
  EXPECT_NE(shuffled(100, 1, 0), shuffled(100, 2, 0));
  EXPECT_NE(shuffled(100, 1, 0), shuffled(100, 1, 1));
}

TEST(Shuffle, PutsEveryElementEverywhereAboutEquallyOften) {
  // 20,000 shuffles of 5: each cell expects 4,000 with deviation 57; 300 is over five of them.
  std::vector<std::vector<int>> counts(5, std::vector<int>(5));
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    const std::vector<int64_t> order = shuffled(5, seed, 0);
    for (size_t i = 0; i < 5; ++i) ++counts[i][static_cast<size_t>(order[i])];
  }
  for (const auto& row : counts) {
    for (const int count : row) EXPECT_NEAR(count, 4000, 300);
  }
}

TEST(BatchPlan, KeepsTheLastPartialBatch) {
  BatchPlan plan(10, 4, 1, true);
  EXPECT_EQ(plan.steps_per_epoch(), 3);
  EXPECT_EQ(plan.range(2).first, 8);
  EXPECT_EQ(plan.range(2).count, 2);
  std::vector<int64_t> all;
  for (int64_t s = 0; s < 3; ++s) {
    const std::vector<int64_t> part = plan.indices(5, s);
    all.insert(all.end(), part.begin(), part.end());
  }
  EXPECT_EQ(all, plan.order(5));
  EXPECT_NE(plan.indices(6, 0), plan.indices(5, 0));
  EXPECT_EQ(BatchPlan(10, 4, 1, false).indices(3, 1), (std::vector<int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(BatchPlan(3, 100, 1, true).steps_per_epoch(), 1);
  EXPECT_THROW(BatchPlan(0, 4, 1, true), Error);
  EXPECT_THROW(BatchPlan(4, 0, 1, true), Error);
  EXPECT_THROW(plan.range(3), Error);
}

TEST(Shards, CountsSumExactlyAndFollowTheWeights) {
  using Counts = std::vector<int64_t>;
  EXPECT_EQ(shard_counts(10, {7, 2, 1}), (Counts{7, 2, 1}));
  EXPECT_EQ(shard_counts(10, {8, 0, 2}), (Counts{8, 0, 2}));
  EXPECT_EQ(shard_counts(13, {10, 3}), (Counts{10, 3}));
  EXPECT_EQ(shard_counts(1, {1, 1, 1}), (Counts{1, 0, 0}));
  EXPECT_EQ(shard_counts(0, {1, 2}), (Counts{0, 0}));
  EXPECT_EQ(shard_counts(5, {0, 0, 1}), (Counts{0, 0, 5}));
  EXPECT_EQ(shard_counts(3, {1, 0, 1}), (Counts{2, 0, 1}));
  EXPECT_EQ(shard_counts(10, {0.3, 0.3, 0.3}), (Counts{4, 3, 3}));
  for (int64_t batch = 0; batch < 300; ++batch) {
    const std::vector<double> weights = {0.1, 0.0, 0.7, 1e-12, 0.2};
    const Counts counts = shard_counts(batch, weights);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), batch);
    EXPECT_EQ(counts[1], 0);
    for (size_t i = 0; i < counts.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(counts[i]), static_cast<double>(batch) * weights[i], 1.0);
    }
  }
  EXPECT_EQ(even_counts(10, 3), (Counts{4, 3, 3}));
  EXPECT_EQ(even_counts(2, 3), (Counts{1, 1, 0}));
}

TEST(Shards, RefuseBadWeights) {
  const std::vector<std::vector<double>> bad = {{}, {0, 0}, {1, -1}, {1, 1.0 / 0.0}, {0.0 / 0.0}};
  for (const auto& weights : bad) {
    try {
      shard_counts(8, weights);
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kUsage);
    }
  }
  EXPECT_THROW(even_counts(8, 0), Error);
}

TEST(Shards, SlicesLieOneAfterTheOther) {
  const std::vector<int64_t> counts = {7, 0, 3};
  EXPECT_EQ(shard_slice(counts, 0).first, 0);
  EXPECT_EQ(shard_slice(counts, 1).first, 7);
  EXPECT_EQ(shard_slice(counts, 1).count, 0);
  EXPECT_EQ(shard_slice(counts, 2).first, 7);
  EXPECT_EQ(shard_slice(counts, 2).count, 3);
  EXPECT_THROW(shard_slice(counts, 3), Error);
}

TEST(FillBatch, WritesScaledSamplesAndLabels) {
  const std::vector<uint8_t> pixels = {1, 2, 3, 4, 5, 6};
  const std::vector<int32_t> labels = {0, 1, 2};
  DatasetSpec spec;
  spec.dtype = DType::kU8;
  spec.sample_shape = Shape{2};
  spec.num_samples = 3;
  spec.features = pixels.data();
  spec.labels = labels.data();
  spec.scale = 0.5f;
  const Dataset data = Dataset::create(spec);
  const std::vector<int64_t> indices = {2, 0};
  std::vector<float> x(4);
  std::vector<int32_t> y(2);
  fill_batch(data, indices.data(), indices.size(), x.data(), y.data());
  EXPECT_EQ(x, (std::vector<float>{2.5f, 3.0f, 0.5f, 1.0f}));
  EXPECT_EQ(y, (std::vector<int32_t>{2, 0}));
  const int64_t outside = 3;
  EXPECT_THROW(fill_batch(data, &outside, 1, x.data(), y.data()), Error);
}

TEST(BatchPlan, DrawsAnewEachEpoch) {
  BatchPlan plan(1000, 32, 5, true, 70);
  EXPECT_EQ(plan.num_samples(), 70);
  EXPECT_EQ(plan.steps_per_epoch(), 3);
  EXPECT_EQ(plan.range(2).count, 6);
  EXPECT_EQ(plan.order(0), BatchPlan(1000, 8, 5, true, 70).order(0));
  EXPECT_NE(plan.order(0), plan.order(1));
  for (const int64_t index : plan.order(3)) {
    EXPECT_GE(index, 0);
    EXPECT_LT(index, 1000);
  }
}

}  // namespace
}  // namespace netcl
