// Tape: the eager way to differentiate. Ops recorded on it run at once; backward walks them.
#ifndef NETCL_CORE_AUTOGRAD_TAPE_H_
#define NETCL_CORE_AUTOGRAD_TAPE_H_

#include <optional>
#include <vector>

#include "core/autograd/eager.h"
#include "core/ops/op.h"
#include "core/ops/recorder.h"

namespace netcl {

// Keeps every tensor that it recorded until it is destroyed. Threads: the queue's.
class Tape : public Recorder {
 public:
  explicit Tape(Eager& eager) : eager_(eager) {}

  // Puts a tensor on the tape. Errors: kUsage for a tensor of another queue.
  ValueId watch(const Tensor& tensor);
  const Tensor& tensor(ValueId value) const { return tensors_[value]; }

  // Gradients of `output` (seed: ones, unless given) with respect to `wanted`; nullopt where output
  // does not depend on it. Errors: kUsage for an op on the path that has no gradient.
  std::vector<std::optional<Tensor>> backward(ValueId output, const std::vector<ValueId>& wanted,
                                              std::optional<ValueId> seed = std::nullopt);

 protected:
  void recorded(const Node& node) override;

 private:
  Eager& eager_;
  std::vector<Tensor> tensors_;
};

}  // namespace netcl

#endif  // NETCL_CORE_AUTOGRAD_TAPE_H_
