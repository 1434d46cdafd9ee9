// Ops made ready to run: kernels chosen, built and holding every argument but the buffers, found
// again by what was asked (op, descriptions, attributes) without making text of it.
//
// An eager op costs a few microseconds on the device, so the way to its kernel must cost less.
// Threads: those of the queue whose tensors are given.
#ifndef NETCL_CORE_AUTOGRAD_OP_CACHE_H_
#define NETCL_CORE_AUTOGRAD_OP_CACHE_H_

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/ops/kernel_provider.h"
#include "core/tensor/tensor.h"

namespace netcl {

// One op with concrete descriptions on one device.
struct PreparedOp {
  const OpRow& op;
  const std::vector<TensorDesc> in;
  const std::vector<std::shared_ptr<const TensorDesc>>
      out;  // shared with the tensors that it makes
  const Attrs attrs;
  Executable executable;
};

class OpCache {
 public:
  // The prepared op for inputs like `in`; chosen and built at the first call. The reference stays
  // valid as long as the cache. Errors: kPlugin, kDevice.
  PreparedOp& get(KernelProvider& kernels, Device& device, const OpRow& op,
                  const std::vector<Tensor>& in, const std::vector<TensorDesc>& out,
                  const Attrs& attrs);
  size_t size() const { return ops_.size(); }

 private:
  std::unordered_multimap<uint64_t, std::unique_ptr<PreparedOp>> ops_;  // by hash
};

}  // namespace netcl

#endif  // NETCL_CORE_AUTOGRAD_OP_CACHE_H_
