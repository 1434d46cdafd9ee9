// Row of all_reduce: the sum of a value over the replicas of a step. On one replica it is the
// identity; whoever runs a graph on several supplies the communication.
#include "core/ops/gradients.h"
#include "core/ops/rows.h"

namespace netcl {

void add_collective_rows(std::vector<OpRow>& rows) {
  OpRow row;
  row.name = "all_reduce";
  row.min_in = row.max_in = 1;
  row.collective = true;
  row.infer = [](const OpCall& call) -> std::vector<TensorDesc> { return {call.in[0]}; };
  // Every replica's x adds to every replica's y.
  row.gradient = [](const GradCall& c) -> Grads {
    return {c.recorder.call("all_reduce", {dy0(c)})};
  };
  row.reference = [](const OpCall&, const std::vector<const HostTensor*>& in,
                     std::vector<HostTensor>& out) { out[0].data = in[0]->data; };
  for (const Shape& shape : {Shape{1}, Shape{7}, Shape{13, 17}, Shape{0}}) {
    OpCase c;
    c.in = {{DType::kF32, shape}};
    row.cases.push_back(c);
  }
  row.doc = {"y = sum of x over the replicas", "dx = all_reduce(dy)", ""};
  rows.push_back(std::move(row));
}

}  // namespace netcl
