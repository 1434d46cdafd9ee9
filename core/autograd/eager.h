// Eager execution: runs one op on tensors of one queue, at once and without waiting.
//
// Kernels are chosen and built at the first use of a shape and kept. Threads: the queue's.
#ifndef NETCL_CORE_AUTOGRAD_EAGER_H_
#define NETCL_CORE_AUTOGRAD_EAGER_H_

#include <memory>
#include <vector>

#include "core/autograd/op_cache.h"
#include "core/ops/kernel_provider.h"
#include "core/tensor/tensor.h"

namespace netcl {

class Eager {
 public:
  Eager(KernelProvider& kernels, std::shared_ptr<Queue> queue)
      : kernels_(kernels), queue_(std::move(queue)) {}

  // Enqueues `op` (attributes complete) and returns its outputs, of the given descriptions.
  // Errors: kPlugin, kDevice.
  std::vector<Tensor> run(const OpRow& op, const std::vector<Tensor>& in,
                          const std::vector<TensorDesc>& out, const Attrs& attrs);

  const std::shared_ptr<Queue>& queue() const { return queue_; }

 private:
  std::vector<Tensor> launch(PreparedOp& prepared, const std::vector<Tensor>& in);

  KernelProvider& kernels_;
  std::shared_ptr<Queue> queue_;
  OpCache ops_;
  std::vector<cl_mem> in_, out_, scratch_;  // of one launch; kept for their capacity
};

}  // namespace netcl

#endif  // NETCL_CORE_AUTOGRAD_EAGER_H_
