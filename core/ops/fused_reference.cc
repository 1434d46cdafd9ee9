#include "core/ops/fused_reference.h"

#include "core/base/error.h"
#include "core/ops/host_recorder.h"

namespace netcl {

std::vector<HostTensor> fused_reference(const FusedOp& op, int64_t batch,
                                        const std::vector<HostTensor>& in) {
  const auto concrete = [batch](const TensorDesc& desc) {
    return TensorDesc{desc.dtype, desc.shape.with_batch(batch)};
  };
  NETCL_CHECK(in.size() == op.num_inputs(), ErrorCode::kUsage, op.row.name, " takes ",
              op.num_inputs(), " inputs, was given ", in.size());
  HostRecorder host;
  std::vector<ValueId> values;
  for (size_t i = 0; i < in.size(); ++i) {
    const TensorDesc want = concrete(op.body.desc(static_cast<ValueId>(i)));
    NETCL_CHECK(in[i].desc == want, ErrorCode::kUsage, op.row.name, ": input ", i, " must be ",
                want.str(), ", is ", in[i].desc.str());
    values.push_back(host.input(in[i]));
  }
  for (const Node& node : op.body.nodes()) {
    std::vector<ValueId> operands;
    for (const ValueId v : node.in) operands.push_back(values[v]);
    const auto made = host.apply(node.op->name, operands, node.attrs.with_batch(batch));
    values.resize(op.body.num_values());
    for (size_t k = 0; k < made.size(); ++k) values[node.out[k]] = made[k];
  }
  std::vector<HostTensor> out;
  for (size_t i = 0; i < op.out.size(); ++i) {
    if (op.out[i]) {
      out.push_back(host.value(values[*op.out[i]]));
      continue;
    }
    const TensorDesc desc = concrete(op.out_descs[i]);
    const std::vector<double> zeros(static_cast<size_t>(desc.shape.num_elements()), 0.0);
    out.push_back({desc, zeros});
  }
  return out;
}

}  // namespace netcl
