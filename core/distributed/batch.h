// Batch: samples and labels in host memory, and its cut into a shard for every replica.
#ifndef NETCL_CORE_DISTRIBUTED_BATCH_H_
#define NETCL_CORE_DISTRIBUTED_BATCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/distributed/shard_plan.h"
#include "core/tensor/shape.h"

namespace netcl {

// Borrows its memory: what it was made from must stay as it is until the gradients (or the loss)
// that come of it have been waited for. The samples lie one behind the other, so do the labels.
class Batch {
 public:
  // Numbers, or tokens, with a class a sample.
  Batch(const std::vector<float>& x, const std::vector<int32_t>& classes);
  Batch(const std::vector<int32_t>& tokens, const std::vector<int32_t>& classes);
  // Labels of more than a class: `num_rows` samples, so many numbers a sample.
  Batch(const std::vector<float>& x, const std::vector<float>& targets, int64_t num_rows);
  // Any memory: elements of a sample and of a label.
  Batch(int64_t num_rows, DType x_dtype, const void* x, int64_t x_elements, DType y_dtype,
        const void* y, int64_t y_elements);

  int64_t rows() const { return rows_; }
  DType x_dtype() const { return x_dtype_; }
  DType y_dtype() const { return y_dtype_; }
  int64_t x_elements() const { return x_elements_; }  // of a sample
  int64_t y_elements() const { return y_elements_; }  // of a label
  const void* x() const { return x_; }
  const void* y() const { return y_; }

  // Rows [first, first + count).
  Batch rows(int64_t first, int64_t count) const;

 private:
  int64_t rows_ = 0;
  DType x_dtype_ = DType::kF32, y_dtype_ = DType::kI32;
  const void *x_ = nullptr, *y_ = nullptr;
  int64_t x_elements_ = 0, y_elements_ = 1;
};

// A replica's part of a batch.
struct Shard {
  Batch batch;
  int64_t first_row = 0;  // its place in the whole batch
};

// The parts of a batch by a plan, or by weights (one a replica, at least 0; only their ratios
// count), in the order of the replicas: whole rows, each in one part, some of them perhaps without
// rows. Errors: kUsage for weights that no plan can be made of.
std::vector<Shard> shard_batch(const Batch& batch, const ShardPlan& plan);
std::vector<Shard> shard_batch(const Batch& batch, const std::vector<double>& weights);

// A plan by "even" or by weights ("7,2,1"), one a replica. Errors: kUsage, also for "auto", which
// needs measured speeds.
ShardPlan fixed_plan(const std::string& shard, size_t n_replicas);

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_BATCH_H_
