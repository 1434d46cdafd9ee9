// Row of all_reduce: the sum over the replicas of a step, inside of its graph. A single replica
// (the tape, the host reference) is the whole group, so its sum is the input.
#include "core/base/error.h"
#include "core/ops/checks.h"
#include "core/ops/gradients.h"
#include "core/ops/rows.h"

namespace netcl {

void add_collective_rows(std::vector<OpRow>& rows) {
  OpRow row;
  row.name = "all_reduce";
  row.collective = true;
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> {
    const TensorDesc& x = call.in[0];
    NETCL_CHECK(x.dtype == DType::kF32 && !x.shape.symbolic(), ErrorCode::kUsage,
                "adds up f32 tensors whose shape does not depend on the batch, not ", x.str());
    return {x};
  };
  // Every replica's loss depends on the sum, so every replica's gradient belongs to each term.
  row.gradient = [](const GradCall& c) -> Grads {
    return {c.recorder.call("all_reduce", {dy0(c)})};
  };
  row.reference = [](const OpCall&, const std::vector<const HostTensor*>& in,
                     std::vector<HostTensor>& out) { out[0].data = in[0]->data; };
  for (const Shape& shape : {Shape{1}, Shape{3, 5}, Shape{0}}) {
    OpCase c;
    c.in = {{DType::kF32, shape}};
    row.cases.push_back(c);
  }
  row.doc = {"y = sum of x over the replicas, in the order of their ranks", "dx = all_reduce(dy)",
             ""};
  rows.push_back(std::move(row));
}

}  // namespace netcl
