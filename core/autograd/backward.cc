#include "core/autograd/backward.h"

#include <map>

#include "core/autograd/fused_gradient.h"
#include "core/base/error.h"
#include "core/ops/fused.h"
#include "core/ops/op.h"

namespace netcl {

namespace {

bool carries_gradient(const Recorder& recorder, ValueId id) {
  return is_float(recorder.desc(id).dtype);
}

// Per value: true if it depends on a wanted one through float values.
std::vector<bool> dependents(const Recorder& recorder, const std::vector<ValueId>& wanted) {
  std::vector<bool> depends(recorder.num_values());
  for (const ValueId id : wanted) {
    NETCL_CHECK(id < depends.size(), ErrorCode::kUsage, "gradients: value ", id,
                " is not of this recorder, which holds ", depends.size());
    depends[id] = carries_gradient(recorder, id);
  }
  for (const Node& node : recorder.nodes()) {
    bool any = false;
    for (const ValueId id : node.in) any = any || depends[id];
    if (!any) continue;
    for (const ValueId id : node.out) depends[id] = depends[id] || carries_gradient(recorder, id);
  }
  return depends;
}

class Walk {
 public:
  Walk(Recorder& recorder, const std::vector<ValueId>& wanted)
      : recorder_(recorder),
        depends_(dependents(recorder, wanted)),
        grads_(recorder.num_values()) {}

  bool depends(ValueId id) const { return depends_[id]; }
  std::optional<ValueId> grad(ValueId id) const { return grads_[id]; }

  // A rule may return another float type than the input's; the gradient is cast to it.
  void add(ValueId id, ValueId grad, const std::string& from) {
    const DType dtype = recorder_.desc(id).dtype;
    if (recorder_.desc(grad).dtype != dtype)
      grad = recorder_.call("cast", {grad}, {{"dtype", std::string(dtype_name(dtype))}});
    NETCL_CHECK(recorder_.desc(grad) == recorder_.desc(id), ErrorCode::kInternal,
                "gradient rule of ", from, " returned ", recorder_.desc(grad).str(),
                " for an input ", recorder_.desc(id).str());
    grads_[id] = grads_[id] ? recorder_.call("add", {*grads_[id], grad}) : grad;
  }

  // Records the range again; visits see its new values from now on. Sums over the replicas are
  // kept.
  void replay(const NodeRange& range) {
    again_.clear();
    for (size_t i = range.begin; i < range.end; ++i) {
      const Node node = recorder_.nodes()[i];  // a copy: recording moves the list
      if (node.op->collective) continue;
      const std::vector<ValueId> out = recorder_.repeat(node, now(node.in));
      for (size_t k = 0; k < out.size(); ++k) again_[node.out[k]] = out[k];
    }
  }

  void visit(size_t index) {
    const Node node = recorder_.nodes()[index];
    Grads dy;
    bool reached = false;
    for (const ValueId id : node.out) {
      dy.push_back(grads_[id]);
      reached = reached || grads_[id].has_value();
    }
    std::vector<bool> needed;
    bool any = false;
    for (const ValueId id : node.in) {
      needed.push_back(depends_[id]);
      any = any || depends_[id];
    }
    if (!reached || !any) return;
    const bool fused = node.fused != nullptr && node.fused->forward == nullptr;
    NETCL_CHECK(fused || node.op->gradient != nullptr, ErrorCode::kUsage, "gradients: op ",
                node.op->name, " (node ", index,
                ") lies between a wanted value and the output and is not differentiable");
    const Node seen{node.op, now(node.in), now(node.out), node.attrs, node.fused};
    const GradCall call{recorder_, seen, dy, needed};
    const Grads dx = fused ? fused_gradient(call) : node.op->gradient(call);
    NETCL_CHECK(dx.size() == node.in.size(), ErrorCode::kInternal, "gradient rule of ",
                node.op->name, " returned ", dx.size(), " entries for ", node.in.size(), " inputs");
    for (size_t i = 0; i < dx.size(); ++i) {
      if (needed[i] && dx[i]) add(node.in[i], *dx[i], node.op->name);
    }
  }

 private:
  std::vector<ValueId> now(std::vector<ValueId> values) const {
    for (ValueId& v : values) {
      const auto found = again_.find(v);
      if (found != again_.end()) v = found->second;
    }
    return values;
  }

  Recorder& recorder_;
  const std::vector<bool> depends_;
  Grads grads_;
  std::map<ValueId, ValueId> again_;  // values of the range being walked, recorded again
};

void check_output(const Recorder& recorder, ValueId output, std::optional<ValueId> seed) {
  NETCL_CHECK(output < recorder.num_values(), ErrorCode::kUsage, "gradients: output ", output,
              " is not of this recorder, which holds ", recorder.num_values());
  const TensorDesc desc = recorder.desc(output);
  NETCL_CHECK(is_float(desc.dtype), ErrorCode::kUsage, "gradients: the output must be a float, is ",
              desc.str());
  if (!seed) return;
  NETCL_CHECK(*seed < recorder.num_values() && recorder.desc(*seed) == desc, ErrorCode::kUsage,
              "gradients: the seed must be ", desc.str(), " like the output");
}

std::vector<std::optional<ValueId>> walk_back(Walk& walk, size_t num_nodes,
                                              const std::vector<ValueId>& wanted,
                                              const std::vector<NodeRange>& recompute) {
  auto range = recompute.rbegin();
  for (size_t i = num_nodes; i-- > 0;) {
    while (range != recompute.rend() && i < range->begin) ++range;
    if (range != recompute.rend() && i + 1 == range->end) walk.replay(*range);
    walk.visit(i);
  }
  std::vector<std::optional<ValueId>> out;
  for (const ValueId v : wanted) out.push_back(walk.grad(v));
  return out;
}

}  // namespace

std::vector<std::optional<ValueId>> gradients(Recorder& recorder, ValueId output,
                                              std::optional<ValueId> seed,
                                              const std::vector<ValueId>& wanted,
                                              const std::vector<NodeRange>& recompute) {
  check_output(recorder, output, seed);
  const size_t num_nodes = recorder.nodes().size();
  Walk walk(recorder, wanted);
  if (!walk.depends(output)) return std::vector<std::optional<ValueId>>(wanted.size());
  const TensorDesc desc = recorder.desc(output);
  if (!seed)
    seed = recorder.call(
        "full", {},
        {{"shape", desc.shape}, {"value", 1.0}, {"dtype", std::string(dtype_name(desc.dtype))}});
  walk.add(output, *seed, "the seed");
  return walk_back(walk, num_nodes, wanted, recompute);
}

std::vector<std::optional<ValueId>> gradients(Recorder& recorder,
                                              const std::vector<Seeded>& outputs,
                                              const std::vector<ValueId>& wanted) {
  for (const Seeded& s : outputs) check_output(recorder, s.output, s.seed);
  const size_t num_nodes = recorder.nodes().size();
  Walk walk(recorder, wanted);
  for (const Seeded& s : outputs) {
    if (walk.depends(s.output)) walk.add(s.output, s.seed, "the seed");
  }
  return walk_back(walk, num_nodes, wanted, {});
}

}  // namespace netcl
