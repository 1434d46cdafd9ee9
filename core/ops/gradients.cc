#include "core/ops/gradients.h"

#include "core/ops/reduce.h"

namespace netcl {

ValueId reduce_to(Recorder& recorder, ValueId grad, Shape target) {
  const Shape from = recorder.desc(grad).shape;
  if (from == target) return grad;
  const size_t extra = from.rank() - target.rank();
  std::vector<int64_t> axes;
  for (size_t i = 0; i < from.rank(); ++i) {
    if (i < extra || (target[i - extra] == 1 && from[i] != 1))
      axes.push_back(static_cast<int64_t>(i));
  }
  ValueId out = grad;
  if (!axes.empty()) out = reduce(recorder, "sum", grad, axes, true);
  if (recorder.desc(out).shape == target) return out;
  return recorder.call("reshape", {out}, {{"shape", target}});
}

ValueId scaled(Recorder& recorder, ValueId x, double factor, double offset) {
  return recorder.call("scale", {x}, {{"factor", factor}, {"offset", offset}});
}

std::function<Grads(const GradCall&)> grad_from_input(const std::string& op) {
  return [op](const GradCall& c) -> Grads {
    return {c.recorder.call(op, {dy0(c), c.node.in[0]}, c.node.attrs)};
  };
}

std::function<Grads(const GradCall&)> grad_from_output(const std::string& op) {
  return [op](const GradCall& c) -> Grads {
    return {c.recorder.call(op, {dy0(c), c.node.out[0]}, c.node.attrs)};
  };
}

}  // namespace netcl
