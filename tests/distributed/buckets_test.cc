// Where the gradient arena is cut into buckets, and how shares of a sharded update meet them.
#include "core/distributed/buckets.h"

#include <gtest/gtest.h>

#include <numeric>

namespace netcl {
namespace {

// The sums, then tensors of 1, 3, 2, 10 and 1 blocks.
ArenaLayout arena() {
  ArenaLayout out;
  out.add("loss", {DType::kF32, Shape{1}});
  out.add("denominator", {DType::kF32, Shape{1}});
  for (const int64_t n : {100, 300, 256, 1200, 5})
    out.add("grad/" + std::to_string(n), {DType::kF32, Shape{n}});
  return out;
}

TEST(BucketsTest, OneBucketHoldsASmallModel) {
  const auto buckets = gradient_buckets(arena(), {});
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_EQ(buckets[0].range.first, 0);
  EXPECT_EQ(buckets[0].range.count, arena().num_floats());
  EXPECT_EQ(buckets[0].tensors.size(), 7u);
  EXPECT_EQ(buckets[0].name, "gradients");
}

TEST(BucketsTest, BordersLieAtTensorsAndCoverTheArena) {
  const ArenaLayout layout = arena();
  for (const BucketSizes& sizes :
       {BucketSizes{1, 1}, BucketSizes{1024, 2048}, BucketSizes{2000, 4096}, BucketSizes{512, 1}}) {
    SCOPED_TRACE(::testing::Message() << sizes.first_bytes << " " << sizes.other_bytes);
    int64_t next = 0;
    size_t tensors = 0;
    for (const GradientBucket& bucket : gradient_buckets(layout, sizes)) {
      EXPECT_EQ(bucket.range.first, next);
      EXPECT_GT(bucket.range.count, 0);
      EXPECT_EQ(layout.find(bucket.tensors.front()).offset, bucket.range.first);
      next += bucket.range.count;
      tensors += bucket.tensors.size();
    }
    EXPECT_EQ(next, layout.num_floats());
    EXPECT_EQ(tensors, layout.entries().size());
  }
  // The sums are never cut.
  EXPECT_EQ(gradient_buckets(layout, {1, 1})[0].tensors,
            (std::vector<std::string>{"loss", "denominator"}));
  const auto buckets = gradient_buckets(layout, {1024, 2048});
  ASSERT_EQ(buckets.size(), 4u);
  EXPECT_EQ(buckets[0].tensors, (std::vector<std::string>{"loss", "denominator"}));
  EXPECT_EQ(buckets[1].tensors, (std::vector<std::string>{"grad/100", "grad/300"}));
  EXPECT_EQ(buckets[2].tensors, (std::vector<std::string>{"grad/256", "grad/1200"}));
  EXPECT_EQ(buckets[3].name, "gradients 4/4");
}

TEST(BucketsTest, WhatNothingHidesIsSmall) {
  // The last bucket would hold all tensors: of at most 1 KiB the last tensor alone fits.
  BucketSizes sizes{512, 1 << 20, 1024};
  auto buckets = gradient_buckets(arena(), sizes);
  ASSERT_EQ(buckets.size(), 3u);
  EXPECT_EQ(buckets[1].tensors,
            (std::vector<std::string>{"grad/100", "grad/300", "grad/256", "grad/1200"}));
  EXPECT_EQ(buckets[2].tensors, (std::vector<std::string>{"grad/5"}));
  EXPECT_EQ(buckets[1].range.first + buckets[1].range.count, buckets[2].range.first);
  EXPECT_EQ(buckets[2].range.first + buckets[2].range.count, arena().num_floats());
  // A bucket that is not much larger stays whole.
  sizes.last_bytes = 8192;
  EXPECT_EQ(gradient_buckets(arena(), sizes).size(), 2u);
}

TEST(BucketsTest, SharesAreWholeBlocksOfEveryRank) {
  for (const uint32_t ranks : {1u, 2u, 3u, 5u, 20u}) {
    int64_t next = 0;
    const std::vector<double> even(ranks, 1.0);
    for (const FloatRange& share : block_shares(17 * 128, even)) {
      EXPECT_EQ(share.first, next);
      EXPECT_EQ(share.count % 128, 0);
      next += share.count;
    }
    EXPECT_EQ(next, 17 * 128);
  }
  const auto shares = block_shares(33 * 128, {1, 1.0 / 32});  // a card and a CPU
  EXPECT_EQ(shares[0].count, 32 * 128);
  EXPECT_EQ(shares[1].first, 32 * 128);
  EXPECT_EQ(shares[1].count, 128);
  EXPECT_EQ(block_shares(8 * 128, {1, 1.0 / 32})[1].count, 0);
}

TEST(BucketsTest, PartsOfABucketAddUp) {
  const ArenaLayout layout = arena();
  const int64_t sums = 256;
  const auto shares = block_shares(layout.num_floats() - sums, {1, 1, 1});
  std::vector<uint64_t> total(3);
  for (const GradientBucket& bucket : gradient_buckets(layout, {2000, 2048})) {
    const int64_t head = bucket.range.first == 0 ? sums : 0;
    const FloatRange range{bucket.range.first + head, bucket.range.count - head};
    const auto counts = counts_within(range, sums, shares);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), uint64_t{0}),
              static_cast<uint64_t>(range.count));
    for (size_t r = 0; r < 3; ++r) total[r] += counts[r];
  }
  for (size_t r = 0; r < 3; ++r) EXPECT_EQ(total[r], static_cast<uint64_t>(shares[r].count));
}

}  // namespace
}  // namespace netcl
