// HyperTable: the hyper-parameters of every parameter group, as the step ops read them on a device.
// Threads: the queue's.
#ifndef NETCL_CORE_DISTRIBUTED_HYPER_TABLE_H_
#define NETCL_CORE_DISTRIBUTED_HYPER_TABLE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/nn/update_graph.h"
#include "core/tensor/queue.h"

namespace netcl {

class HyperTable {
 public:
  // Errors: kDevice.
  HyperTable(std::shared_ptr<Queue> queue, size_t n_groups);

  const Storage& storage() const { return *storage_; }
  // Enqueues what differs from the values that the device has. `step` counts from 1.
  void write(const Optimizer& optimizer, const std::vector<UpdatePlan::Group>& groups, int64_t step,
             double lr);

 private:
  std::shared_ptr<Queue> queue_;
  std::shared_ptr<Storage> storage_;
  std::vector<std::array<float, 16>> values_;  // as the device has them; empty: unknown
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_HYPER_TABLE_H_
