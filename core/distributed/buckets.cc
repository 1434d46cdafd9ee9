#include "core/distributed/buckets.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/data/batches.h"

namespace netcl {

namespace {

// Cuts the last bucket before its last tensors of at most `most` bytes.
void split_last(std::vector<GradientBucket>& buckets, const ArenaLayout& gradients, int64_t most) {
  GradientBucket& large = buckets.back();
  const int64_t end = large.range.first + large.range.count;
  size_t keep = large.tensors.size();  // tensors that stay in it
  for (int64_t cut = end; keep > 0; --keep) {
    cut = gradients.find(large.tensors[keep - 1]).offset;
    const bool is_sum = large.tensors[keep - 1].rfind("grad/", 0) != 0;
    if (is_sum || (end - cut) * static_cast<int64_t>(sizeof(float)) > most) break;
  }
  if (keep == 0 || keep == large.tensors.size()) return;
  const auto from = large.tensors.begin() + static_cast<std::ptrdiff_t>(keep);
  const int64_t first = gradients.find(*from).offset;
  GradientBucket last{{first, end - first}, {from, large.tensors.end()}, {}};
  large.range.count = first - large.range.first;
  large.tensors.erase(from, large.tensors.end());
  buckets.push_back(std::move(last));
}

}  // namespace

std::vector<GradientBucket> gradient_buckets(const ArenaLayout& gradients,
                                             const BucketSizes& sizes) {
  std::vector<GradientBucket> out;
  const std::vector<ArenaLayout::Entry>& entries = gradients.entries();
  bool full = true;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (full) out.push_back({{entries[i].offset, 0}, {}, {}});
    GradientBucket& bucket = out.back();
    const int64_t end = i + 1 < entries.size() ? entries[i + 1].offset : gradients.num_floats();
    bucket.range.count = end - bucket.range.first;
    bucket.tensors.push_back(entries[i].name);
    const int64_t most = out.size() == 1 ? sizes.first_bytes : sizes.other_bytes;
    // The sums stay together, whatever the sizes.
    const bool in_sums = i + 1 < entries.size() && entries[i + 1].name.rfind("grad/", 0) != 0;
    full = !in_sums && bucket.range.count * static_cast<int64_t>(sizeof(float)) >= most;
  }
  if (out.size() > 1 &&
      out.back().range.count * static_cast<int64_t>(sizeof(float)) > 2 * sizes.last_bytes) {
    split_last(out, gradients, sizes.last_bytes);
  }
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].name = out.size() == 1 ? "gradients" : str_cat("gradients ", i + 1, "/", out.size());
  }
  return out;
}

std::vector<FloatRange> block_shares(int64_t floats, const std::vector<double>& weights) {
  constexpr int64_t kBlock = ArenaLayout::kAlignFloats;
  std::vector<FloatRange> out;
  int64_t first = 0;
  for (const int64_t blocks : shard_counts(floats / kBlock, weights)) {
    out.push_back({first * kBlock, blocks * kBlock});
    first += blocks;
  }
  return out;
}

std::vector<uint64_t> counts_within(const FloatRange& range, int64_t offset,
                                    const std::vector<FloatRange>& shares) {
  std::vector<uint64_t> out;
  for (const FloatRange& share : shares) {
    const int64_t begin = std::max(share.first + offset, range.first);
    const int64_t end = std::min(share.first + share.count + offset, range.first + range.count);
    out.push_back(static_cast<uint64_t>(std::max<int64_t>(end - begin, 0)));
  }
  return out;
}

}  // namespace netcl
