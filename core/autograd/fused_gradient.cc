#include "core/autograd/fused_gradient.h"

#include "core/autograd/backward.h"

namespace netcl {

namespace {

ValueId zeros(Recorder& recorder, const TensorDesc& desc) {
  return recorder.call(
      "full", {},
      {{"shape", desc.shape}, {"value", 0.0}, {"dtype", std::string(dtype_name(desc.dtype))}});
}

// Records the forward body in the gradient's.
void record_again(const FusedOp& forward, FusedOp& out) {
  out.num_again = forward.body.nodes().size();
  out.again.resize(forward.body.num_values());
  for (size_t i = 0; i < forward.num_inputs(); ++i) out.again[i] = static_cast<ValueId>(i);
  for (const Node& node : forward.body.nodes()) {
    std::vector<ValueId> in;
    for (const ValueId v : node.in) in.push_back(out.again[v]);
    const std::vector<ValueId> made = out.body.repeat(node, in);
    for (size_t k = 0; k < made.size(); ++k) out.again[node.out[k]] = made[k];
  }
}

}  // namespace

std::shared_ptr<const FusedOp> gradient_of(const std::shared_ptr<const FusedOp>& forward,
                                           const std::vector<bool>& given,
                                           const std::vector<bool>& needed) {
  auto out = std::make_shared<FusedOp>();
  out->forward = forward;
  out->row.name = gradient_name(forward->row.name);
  FusedBody& body = out->body;
  for (size_t i = 0; i < forward->num_inputs(); ++i)
    body.input(forward->body.desc(static_cast<ValueId>(i)));
  for (const TensorDesc& desc : forward->out_descs) body.input(desc);
  std::vector<std::pair<size_t, ValueId>> dy;
  for (size_t k = 0; k < forward->out.size(); ++k) {
    if (is_float(forward->out_descs[k].dtype))
      dy.emplace_back(k, body.input(forward->out_descs[k]));
  }
  out->row.min_in = out->row.max_in = body.num_values();

  record_again(*forward, *out);
  std::vector<Seeded> seeds;
  for (const auto& [k, value] : dy) {
    if (given[k]) seeds.push_back({out->again[*forward->out[k]], value});
  }
  std::vector<ValueId> wanted;
  for (size_t i = 0; i < forward->num_inputs(); ++i) {
    if (needed[i]) wanted.push_back(static_cast<ValueId>(i));
  }
  const auto found = gradients(body, seeds, wanted);
  size_t next = 0;
  for (size_t i = 0; i < forward->num_inputs(); ++i) {
    const TensorDesc desc = body.desc(static_cast<ValueId>(i));
    const auto grad = needed[i] ? found[next++] : std::nullopt;
    if (!is_float(desc.dtype)) continue;
    out->out.push_back(grad);
    out->out_descs.push_back(desc);
  }
  return out;
}

Grads fused_gradient(const GradCall& call) {
  const std::shared_ptr<const FusedOp>& forward = call.node.fused;
  std::vector<bool> given;
  for (const auto& dy : call.dy) given.push_back(dy.has_value());
  const auto gradient = gradient_of(forward, given, call.needed);
  std::vector<ValueId> in = call.node.in;
  in.insert(in.end(), call.node.out.begin(), call.node.out.end());
  for (size_t k = 0; k < call.dy.size(); ++k) {
    const TensorDesc& desc = forward->out_descs[k];
    if (is_float(desc.dtype)) in.push_back(call.dy[k] ? *call.dy[k] : zeros(call.recorder, desc));
  }
  const std::vector<ValueId> made = call.recorder.apply(gradient, in, call.node.attrs);
  Grads out;
  size_t next = 0;
  for (size_t i = 0; i < call.node.in.size(); ++i) {
    const bool has_one = is_float(call.in_desc(i).dtype);
    out.emplace_back(has_one && gradient->out[next] ? std::optional<ValueId>(made[next])
                                                    : std::nullopt);
    if (has_one) ++next;
  }
  return out;
}

}  // namespace netcl
