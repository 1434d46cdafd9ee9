// Fused ops: a part of a trace for which a kernel set may have kernels of its own.
//
// A layer records ops as always and then says: these values, made from those alone, are what the op
// "vendor.op" computes. The recorded ops stay its meaning (the body): where no kernels serve, they
// run, and they are the oracle of the kernels where some do. Threads: values.
#ifndef NETCL_CORE_OPS_FUSED_H_
#define NETCL_CORE_OPS_FUSED_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ops/op.h"
#include "core/ops/recorder.h"

namespace netcl {

// Ops as a function of their inputs, which are its first values. Runs nothing.
class FusedBody : public Recorder {
 public:
  ValueId input(TensorDesc desc) { return add_value(std::move(desc)); }

 protected:
  void recorded(const Node&) override {}
};

struct FusedOp {
  // Name and numbers of inputs; no reference and no gradient rule: the body is both.
  OpRow row;
  FusedBody body;
  std::vector<TensorDesc> out_descs;
  // The body's value of each output; nullopt in a gradient: nobody asked for it, or it is zero.
  std::vector<std::optional<ValueId>> out;

  // Of a gradient, "<op>.grad": whose it is. Its inputs are those of the forward op, its outputs,
  // and the gradients of its float outputs; its outputs the gradients of its float inputs. The body
  // begins with the forward body's nodes, recorded again.
  std::shared_ptr<const FusedOp> forward;
  std::vector<ValueId> again;  // what each value of the forward body is in this one
  size_t num_again = 0;        // how many nodes those are

  size_t num_inputs() const { return row.min_in; }
};

// The recorded ops between `in` and `out` as the op `name`. Errors: kPlugin, saying what does not
// fit, for a name that is not "vendor.op", a value listed twice, an output that no op made, an
// input that no op reads, a value that enters unlisted, and ops that are no function of their
// inputs (random ones, sums over the replicas).
std::shared_ptr<const FusedOp> cut_out(const Recorder& recorder, const std::string& name,
                                       const std::vector<ValueId>& in,
                                       const std::vector<ValueId>& out);

// The name of the op that computes the gradient of a fused op.
std::string gradient_name(const std::string& op);

}  // namespace netcl

#endif  // NETCL_CORE_OPS_FUSED_H_
