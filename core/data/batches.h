// Which samples make up a step: the shuffle of an epoch, its batches, and each rank's shard.
//
// The order depends on the seed, the epoch and the number of samples alone, never on the standard
// library, the machine or the number of workers, so every worker computes the same one.
// Threads: a BatchPlan is read by many; `indices` belongs to one thread (it keeps its last epoch).
#ifndef NETCL_CORE_DATA_BATCHES_H_
#define NETCL_CORE_DATA_BATCHES_H_

#include <cstdint>
#include <vector>

#include "core/data/dataset.h"

namespace netcl {

// Half-open range [first, first + count).
struct IndexRange {
  int64_t first = 0;
  int64_t count = 0;
};

// The `index`-th number of the random sequence that `seed` and `stream` name: the finaliser of
// SplitMix64 applied to a counter. Same value on every machine.
// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014).
uint64_t random_bits(uint64_t seed, uint64_t stream, uint64_t index);

// A permutation of 0 .. n-1: Fisher-Yates from the last element down, where element i swaps with
// floor(random_bits(seed, stream, i) * (i + 1) / 2^64).
std::vector<int64_t> shuffled(int64_t n, uint64_t seed, uint64_t stream);

class BatchPlan {
 public:
  // The last batch of an epoch is smaller when batch_size does not divide n; none is dropped.
  // Without `shuffle` the samples come in their own order. With `draws` > 0 an epoch is that many
  // samples drawn with replacement. Errors: kUsage for n or batch_size < 1.
  BatchPlan(int64_t num_samples, int64_t batch_size, uint64_t seed, bool shuffle,
            int64_t draws = 0);

  int64_t num_samples() const { return draws_ > 0 ? draws_ : num_samples_; }  // of an epoch
  int64_t batch_size() const { return batch_size_; }
  int64_t steps_per_epoch() const { return (num_samples() + batch_size_ - 1) / batch_size_; }

  // All samples in the order of an epoch (epochs count from 0).
  std::vector<int64_t> order(int64_t epoch) const;
  // Where step s (from 0) lies in that order.
  IndexRange range(int64_t step) const;
  // The samples of step s of an epoch.
  std::vector<int64_t> indices(int64_t epoch, int64_t step);

 private:
  int64_t num_samples_;
  int64_t batch_size_;
  uint64_t seed_;
  bool shuffle_;
  int64_t draws_;
  int64_t kept_epoch_ = -1;
  std::vector<int64_t> kept_order_;
};

// Splits `batch` samples by weights >= 0: largest-remainder rounding (ties to the lower rank), sums
// to `batch`, weight 0 gets 0. Errors: kUsage for no weights, a negative or infinite one, or a sum
// of 0.
std::vector<int64_t> shard_counts(int64_t batch, const std::vector<double>& weights);

// As equal as possible; the first ranks take the rest. Errors: kUsage for ranks < 1.
std::vector<int64_t> even_counts(int64_t batch, int64_t ranks);

// The part of a batch that belongs to `rank` when the ranks' parts lie one after the other.
IndexRange shard_slice(const std::vector<int64_t>& counts, size_t rank);

// Writes the samples at indices[0 .. count) to x (count * input_bytes()) and labels (count *
// label_bytes()). Errors: kInternal for an index out of range. Threads: any, on distinct targets.
void fill_batch(const Dataset& dataset, const int64_t* indices, size_t count, void* x,
                void* labels);

}  // namespace netcl

#endif  // NETCL_CORE_DATA_BATCHES_H_
