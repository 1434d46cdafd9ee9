#include "core/graph/lower.h"

#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/graph/passes.h"
#include "core/ops/fused.h"

namespace netcl {

namespace {

// Records a graph again, node by node.
class Lowering {
 public:
  explicit Lowering(const Graph& from) : from_(from) {
    for (const Graph::Place& place : from.externals())
      now_[place.value] = to_.external(place.name, from.desc(place.value));
  }

  void keep(const Node& node) {
    const std::vector<ValueId> made = to_.repeat(node, now(node.in));
    for (size_t k = 0; k < made.size(); ++k) now_[node.out[k]] = made[k];
    origin(node, made);
  }

  void expand(const Node& node) {
    const FusedOp& op = *node.fused;
    std::vector<ValueId> values = now(node.in);  // of the body
    values.resize(op.body.num_values());
    size_t next = 0;
    if (op.forward) next = take_forward(node, values);
    const std::vector<Node>& nodes = op.body.nodes();
    for (; next < nodes.size(); ++next) {
      std::vector<ValueId> in;
      for (const ValueId v : nodes[next].in) in.push_back(values[v]);
      const std::vector<ValueId> made = to_.repeat(nodes[next], in);
      for (size_t k = 0; k < made.size(); ++k) values[nodes[next].out[k]] = made[k];
      if (op.forward && next + 1 == op.num_again) use_outputs(node, values);
      origin(node, made);
    }
    for (size_t k = 0; k < op.out.size(); ++k) {
      if (op.out[k]) now_[node.out[k]] = values[*op.out[k]];
    }
    expanded_[node.out[0]] = std::move(values);
  }

  Graph finish() {
    to_.leave_out(from_.left_out());
    to_.keep_ops(from_.kept_ops());
    for (const Graph::Place& place : from_.outputs()) to_.output(place.name, now({place.value})[0]);
    return std::move(to_);
  }

 private:
  // Values of the forward body that this graph has already. Returns the number of nodes that need
  // not be recorded again for them.
  size_t take_forward(const Node& node, std::vector<ValueId>& values) const {
    const FusedOp& op = *node.fused;
    const auto known = expanded_.find(node.in[op.forward->num_inputs()]);
    if (known == expanded_.end()) return 0;
    for (size_t v = 0; v < op.again.size(); ++v) values[op.again[v]] = known->second[v];
    return op.num_again;
  }

  // The forward op's outputs are at hand, so what makes them again is not needed for themselves.
  static void use_outputs(const Node& node, std::vector<ValueId>& values) {
    const FusedOp& op = *node.fused;
    const size_t first = op.forward->num_inputs();
    for (size_t k = 0; k < op.forward->out.size(); ++k)
      values[op.again[*op.forward->out[k]]] = values[first + k];
  }

  std::vector<ValueId> now(std::vector<ValueId> values) const {
    for (ValueId& v : values) {
      const auto found = now_.find(v);
      NETCL_CHECK(found != now_.end(), ErrorCode::kInternal, "lowering: nothing makes ",
                  from_.describe(v));
      v = found->second;
    }
    return values;
  }

  void origin(const Node& node, const std::vector<ValueId>& made) {
    const std::string* part = from_.origin(node.out[0]);
    if (part == nullptr) return;
    for (const ValueId v : made) to_.set_origin(v, *part);
  }

  const Graph& from_;
  Graph to_;
  std::map<ValueId, ValueId> now_;                    // values of `from_` in `to_`
  std::map<ValueId, std::vector<ValueId>> expanded_;  // by a node's first output: its body's
};

}  // namespace

bool has_fused(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node& node) { return node.fused != nullptr; });
}

Graph lower(const Graph& graph, const std::function<bool(const Node&)>& served) {
  Lowering lowering(graph);
  for (const Node& node : graph.nodes()) {
    if (node.fused == nullptr || served(node)) {
      lowering.keep(node);
    } else {
      lowering.expand(node);
    }
  }
  Graph out = lowering.finish();
  run_passes(out);
  return out;
}

}  // namespace netcl
