#include "core/distributed/batch.h"

#include "core/base/error.h"
#include "core/data/batches.h"

namespace netcl {

namespace {

// Elements of a sample, where `total` of them belong to `rows`.
int64_t per_row(size_t total, int64_t rows, const char* what) {
  const auto n = static_cast<int64_t>(total);
  NETCL_CHECK(rows > 0 ? n % rows == 0 : n == 0 && rows == 0, ErrorCode::kUsage, "a batch of ",
              rows, " rows with ", n, " ", what, ": the rows must be equally long");
  return rows > 0 ? n / rows : 0;
}

int64_t count(size_t n) { return static_cast<int64_t>(n); }

std::vector<Shard> cut(const Batch& batch, const std::vector<int64_t>& counts) {
  std::vector<Shard> out;
  for (size_t r = 0; r < counts.size(); ++r) {
    const IndexRange range = shard_slice(counts, r);
    out.push_back({batch.rows(range.first, range.count), range.first});
  }
  return out;
}

}  // namespace

Batch::Batch(int64_t num_rows, DType x_dtype, const void* x, int64_t x_elements, DType y_dtype,
             const void* y, int64_t y_elements)
    : rows_(num_rows),
      x_dtype_(x_dtype),
      y_dtype_(y_dtype),
      x_(x),
      y_(y),
      x_elements_(x_elements),
      y_elements_(y_elements) {
  NETCL_CHECK(num_rows >= 0 && x_elements >= 0 && y_elements >= 0, ErrorCode::kUsage, "a batch of ",
              num_rows, " rows with ", x_elements, " and ", y_elements,
              " elements a row: none of these can be below 0");
}

Batch::Batch(const std::vector<float>& x, const std::vector<int32_t>& classes)
    : Batch(count(classes.size()), DType::kF32, x.data(),
            per_row(x.size(), count(classes.size()), "numbers"), DType::kI32, classes.data(), 1) {}

Batch::Batch(const std::vector<int32_t>& tokens, const std::vector<int32_t>& classes)
    : Batch(count(classes.size()), DType::kI32, tokens.data(),
            per_row(tokens.size(), count(classes.size()), "tokens"), DType::kI32, classes.data(),
            1) {}

Batch::Batch(const std::vector<float>& x, const std::vector<float>& targets, int64_t num_rows)
    : Batch(num_rows, DType::kF32, x.data(), per_row(x.size(), num_rows, "numbers"), DType::kF32,
            targets.data(), per_row(targets.size(), num_rows, "targets")) {}

Batch Batch::rows(int64_t first, int64_t n) const {
  NETCL_CHECK(first >= 0 && n >= 0 && first + n <= rows_, ErrorCode::kUsage, "rows ", first, " to ",
              first + n, " of a batch of ", rows_);
  const auto at = [first](const void* base, int64_t elements, DType dtype) -> const void* {
    if (base == nullptr) return nullptr;
    return static_cast<const char*>(base) + static_cast<size_t>(first * elements) * size_of(dtype);
  };
  return {n,           x_dtype_, at(x_, x_elements_, x_dtype_),
          x_elements_, y_dtype_, at(y_, y_elements_, y_dtype_),
          y_elements_};
}

std::vector<Shard> shard_batch(const Batch& batch, const ShardPlan& plan) {
  return cut(batch, plan.counts(batch.rows()));
}

std::vector<Shard> shard_batch(const Batch& batch, const std::vector<double>& weights) {
  return cut(batch, shard_counts(batch.rows(), weights));
}

ShardPlan fixed_plan(const std::string& shard, size_t n_replicas) {
  NETCL_CHECK(n_replicas > 0, ErrorCode::kUsage,
              "replicas need at least one queue; ask DeviceManager::queues for some");
  NETCL_CHECK(shard != "auto", ErrorCode::kUsage,
              "shard \"auto\" needs measured speeds, which replicas in one process do not take; "
              "use \"even\" or a weight a replica, such as \"3,1\"");
  return ShardPlan(shard, n_replicas);
}

}  // namespace netcl
