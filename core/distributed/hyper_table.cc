#include "core/distributed/hyper_table.h"

#include <algorithm>

namespace netcl {

namespace {

constexpr size_t kBytes = 16 * sizeof(float);  // of a group

}  // namespace

HyperTable::HyperTable(std::shared_ptr<Queue> queue, size_t n_groups)
    : queue_(std::move(queue)),
      storage_(queue_->allocate(n_groups * kBytes, "the hyper-parameters")) {}

void HyperTable::write(const Optimizer& optimizer, const std::vector<UpdatePlan::Group>& groups,
                       int64_t step, double lr) {
  const bool known = !values_.empty();
  values_.resize(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::array<float, 16> values =
        optimizer.hyper(step, lr * groups[i].lr_scale, groups[i].weight_decay);
    if (known && values == values_[i]) continue;
    values_[i] = values;
    // A fill carries the values in the command itself, so nothing must outlive the call.
    cl_float16 pattern;
    std::copy(values.begin(), values.end(), pattern.s);
    with_cl_errors("writing the hyper-parameters", [&] {
      queue_->cl().enqueueFillBuffer(storage_->buffer(), pattern, i * kBytes, kBytes);
    });
  }
}

}  // namespace netcl
