// Buckets: the gradient arena cut into ranges that are reduced one by one, so that reducing the
// first gradients overlaps with computing the others. Every rank cuts it in the same places.
// Threads: any (pure functions).
#ifndef NETCL_CORE_DISTRIBUTED_BUCKETS_H_
#define NETCL_CORE_DISTRIBUTED_BUCKETS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/nn/arena.h"

namespace netcl {

struct BucketSizes {
  // The first bucket is small, so that the first reduction starts early; the others are as large as
  // transports need to reach their speed. A bucket is at least as large as its largest tensor.
  // Nothing hides the last one, which is ready when backward ends: of a larger bucket there, the
  // last tensors of at most last_bytes become a bucket of their own.
  int64_t first_bytes = int64_t{1} << 20;
  int64_t other_bytes = int64_t{25} << 20;
  int64_t last_bytes = int64_t{1} << 20;
};

struct GradientBucket {
  FloatRange range;
  std::vector<std::string> tensors;
  std::string name;  // for messages: "gradients", or "gradients 2/3"
};

// Buckets in the order of the arena, which is the order in which backward yields gradients. The
// sums at its beginning are ready before any gradient and belong to the first bucket.
std::vector<GradientBucket> gradient_buckets(const ArenaLayout& gradients,
                                             const BucketSizes& sizes);

// Parts of [0, floats) for each rank in proportion to its weight: whole blocks, some perhaps none.
// Errors: kUsage for weights that are none (data/batches.h).
std::vector<FloatRange> block_shares(int64_t floats, const std::vector<double>& weights);

// How much of `range` lies in each share; `offset`: where the shares' arena begins in the range's.
std::vector<uint64_t> counts_within(const FloatRange& range, int64_t offset,
                                    const std::vector<FloatRange>& shares);

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_BUCKETS_H_
