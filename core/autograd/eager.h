// Eager execution: runs one op on tensors of one queue, at once and without waiting.
//
// Kernels are chosen and built at the first use of a shape and kept. Threads: the queue's.
#ifndef NETCL_CORE_AUTOGRAD_EAGER_H_
#define NETCL_CORE_AUTOGRAD_EAGER_H_

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ops/kernel_provider.h"
#include "core/tensor/tensor.h"

namespace netcl {

class Eager {
 public:
  Eager(KernelProvider& kernels, std::shared_ptr<Queue> queue) : kernels_(kernels), queue_(std::move(queue)) {}

  // Enqueues `op` (attributes complete) and returns its outputs, of the given descriptions.
  // Errors: kPlugin, kDevice.
  std::vector<Tensor> run(const OpRow& op, const std::vector<Tensor>& in, const std::vector<TensorDesc>& out,
                          const Attrs& attrs);

  const std::shared_ptr<Queue>& queue() const { return queue_; }

 private:
  Executable& executable(const KernelQuestion& question);

  KernelProvider& kernels_;
  std::shared_ptr<Queue> queue_;
  std::unordered_map<std::string, std::unique_ptr<Executable>> executables_;
};

}  // namespace netcl

#endif  // NETCL_CORE_AUTOGRAD_EAGER_H_
