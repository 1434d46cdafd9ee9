#include "core/autograd/eager.h"

namespace netcl {

std::vector<Tensor> Eager::run(const OpRow& op, const std::vector<Tensor>& in,
                               const std::vector<TensorDesc>& out, const Attrs& attrs) {
  // A queue is a group of one replica, so a collective yields its input.
  if (op.view || op.collective) return {Tensor(in[0], out[0])};
  return launch(ops_.get(kernels_, queue_->device(), op, in, out, attrs), in);
}

std::vector<Tensor> Eager::launch(PreparedOp& prepared, const std::vector<Tensor>& in) {
  in_.clear();
  out_.clear();
  scratch_.clear();
  for (const Tensor& t : in) in_.push_back(t.buffer()());
  std::vector<Tensor> results;
  results.reserve(prepared.out.size());
  for (const auto& desc : prepared.out) {
    results.emplace_back(queue_, desc, prepared.op.name);
    out_.push_back(results.back().buffer()());
  }
  // Scratch goes back to the pool as soon as its user is enqueued: the queue is in order.
  std::vector<std::shared_ptr<Storage>> scratch;
  for (const uint64_t bytes : prepared.executable.recipe().scratch_bytes) {
    scratch.push_back(queue_->allocate(bytes, "scratch of " + prepared.op.name));
    scratch_.push_back(scratch.back()->buffer()());
  }
  Executable& executable = prepared.executable;
  executable.bind(in_.data(), out_.data(), scratch_.data());
  cl::Event done;
  executable.enqueue(queue_->cl(), &done);
  for (Tensor& result : results) result.set_ready(done);
  queue_->enqueued(executable.num_launches(), done);
  return results;
}

}  // namespace netcl
