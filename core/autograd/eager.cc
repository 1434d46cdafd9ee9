#include "core/autograd/eager.h"

namespace netcl {

Executable& Eager::executable(const KernelQuestion& question) {
  auto& slot = executables_[question.key()];
  if (slot == nullptr) {
    slot = std::make_unique<Executable>(queue_->device(), *kernels_.recipe(queue_->device(), question));
  }
  return *slot;
}

std::vector<Tensor> Eager::run(const OpRow& op, const std::vector<Tensor>& in, const std::vector<TensorDesc>& out,
                               const Attrs& attrs) {
  if (op.view) return {Tensor(in[0], out[0])};
  std::vector<TensorDesc> in_descs;
  std::vector<cl::Buffer> in_buffers, out_buffers, scratch;
  for (const Tensor& t : in) {
    in_descs.push_back(t.desc());
    in_buffers.push_back(t.buffer());
  }
  Executable& kernel = executable({op, in_descs, out, attrs});
  std::vector<Tensor> results;
  for (const TensorDesc& desc : out) {
    results.emplace_back(queue_, desc, op.name);
    out_buffers.push_back(results.back().buffer());
  }
  std::vector<std::shared_ptr<Storage>> scratch_storage;
  for (const uint64_t bytes : kernel.recipe().scratch_bytes) {
    scratch_storage.push_back(queue_->allocate(bytes, "scratch of " + op.name));
    scratch.push_back(scratch_storage.back()->buffer());
  }
  kernel.bind(in_buffers, out_buffers, scratch);
  kernel.enqueue(queue_->cl());
  queue_->enqueued(kernel.num_launches());
  return results;
}

}  // namespace netcl
