// Elementwise ops one after the other become a chain (core/ops/chain.h): what lies between them is
// not stored. Changes of layout (permute, broadcast_to, slice) and constants in front of an
// elementwise op become part of it.
#include <algorithm>
#include <map>
#include <optional>

#include "core/graph/passes/list.h"
#include "core/ops/chain.h"

namespace netcl {

namespace {

constexpr size_t kMostSteps = 16;

// A node as a chain over values.
struct Part {
  std::vector<ValueId> in;
  Chain chain;
  Shape shape;

  bool moves_only() const { return chain.steps.empty(); }
};

// A slice along one axis in steps of 1 as a view.
std::optional<ChainView> as_cut(const Node& node, const Shape& shape) {
  const auto& axes = node.attrs.integers("axes");
  const auto& step = node.attrs.integers("step");
  if (axes.size() != 1 || axes[0] < 0 || (!step.empty() && step[0] != 1)) return std::nullopt;
  const int64_t dim = shape[static_cast<size_t>(axes[0])];
  int64_t first = node.attrs.integers("start")[0], end = node.attrs.integers("stop")[0];
  if (first < 0) first += dim;
  end = std::min(end < 0 ? end + dim : end, dim);
  return ChainView{{axes[0], first, end}, {}};
}

ChainView as_order(const Node& node) {
  ChainView out{{}, node.attrs.integers("axes")};
  for (int64_t& axis : out.axes) axis += axis < 0 ? static_cast<int64_t>(out.axes.size()) : 0;
  return out;
}

class Fusion {
 public:
  explicit Fusion(Graph& graph) : graph_(graph) {
    for (const Node& node : graph.nodes()) {
      for (const ValueId v : distinct(node.in)) ++uses_[v];
    }
    for (const Graph::Place& place : graph.outputs()) ++uses_[place.value];
    for (const Graph::Place& place : graph.outputs()) outputs_.push_back(place.value);
  }

  void run() {
    std::vector<Node> nodes = std::move(graph_.mutable_nodes());
    graph_.mutable_nodes().clear();
    for (Node& node : nodes) {
      absorb(node);
      for (const ValueId v : node.out) producer_[v] = done_.size();
      done_.push_back(std::move(node));
    }
    std::vector<Node>& kept = graph_.mutable_nodes();
    for (std::optional<Node>& node : done_) {
      if (node) kept.push_back(std::move(*node));
    }
    drop_dead(graph_);
  }

 private:
  static std::vector<ValueId> distinct(std::vector<ValueId> values) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
  }

  bool is_output(ValueId v) const { return std::count(outputs_.begin(), outputs_.end(), v) > 0; }

  std::optional<Part> part_of(const Node& node) const {
    if (node.fused || node.out.size() != 1 || graph_.kept_ops().count(node.op->name) > 0)
      return std::nullopt;
    Part out;
    out.shape = graph_.desc(node.out[0]).shape;
    for (const ValueId v : node.in) {
      if (graph_.desc(v).dtype == DType::kI64) return std::nullopt;
    }
    if (graph_.desc(node.out[0]).dtype == DType::kI64) return std::nullopt;
    const std::string& name = node.op->name;
    out.in = node.in;
    if (name == "chain") {
      out.chain = Chain::parse(node.attrs.text("program"), node.attrs.text("views"));
    } else if (name == "permute") {
      out.chain.views[0] = as_order(node);
    } else if (name == "slice") {
      const auto cut = as_cut(node, graph_.desc(node.in[0]).shape);
      if (!cut) return std::nullopt;
      out.chain.views[0] = *cut;
    } else if (name == "full" || (node.op->family == "elementwise" && name != "broadcast_to")) {
      ChainStep step{node.op, {}, node.attrs};
      out.in.clear();
      for (const ValueId v : node.in) step.operands.push_back({true, add_input(out, v, {})});
      out.chain.steps.push_back(std::move(step));
    } else if (name != "broadcast_to") {
      return std::nullopt;
    }
    return out;
  }

  static size_t add_input(Part& part, ValueId value, const ChainView& view) {
    for (size_t i = 0; i < part.in.size(); ++i) {
      if (part.in[i] == value && part.chain.view(i) == view) return i;
    }
    part.in.push_back(value);
    if (!view.plain()) part.chain.views[part.in.size() - 1] = view;
    return part.in.size() - 1;
  }

  int64_t elements_of_one(const Shape& shape) const {
    int64_t n = 1;
    for (const int64_t d : shape.dims()) n *= d < 0 ? -d : d;
    return n;
  }
  bool one_element(ValueId v) const {
    const Shape& shape = graph_.desc(v).shape;
    return !shape.symbolic() && elements_of_one(shape) == 1;
  }

  // Every input is as large as the result, in its order, or one number.
  bool flat(const Part& part) const {
    for (size_t i = 0; i < part.in.size(); ++i) {
      if (!part.chain.view(i).plain()) return false;
      if (graph_.desc(part.in[i]).shape != part.shape && !one_element(part.in[i])) return false;
    }
    return true;
  }

  // The chain with `from`, whose result is input `k` of `to`, in front of it. `view` of each of its
  // inputs is what the caller chose.
  std::optional<Part> merged(const Part& from, const Part& to, size_t k,
                             const std::vector<std::pair<ValueId, ChainView>>& inputs) const {
    Part out;
    out.shape = to.shape;
    std::vector<size_t> of_from, of_to(to.in.size());
    for (size_t i = 0; i < to.in.size(); ++i) {
      if (i != k) of_to[i] = add_input(out, to.in[i], to.chain.view(i));
      if (i != k) continue;
      for (const auto& [value, view] : inputs) of_from.push_back(add_input(out, value, view));
    }
    const size_t shift = from.chain.steps.size();
    if (out.in.empty() || out.in.size() > Chain::kMostInputs ||
        shift + to.chain.steps.size() > kMostSteps)
      return std::nullopt;
    for (ChainStep step : from.chain.steps) {
      for (ChainOperand& o : step.operands) o.index = o.input ? of_from[o.index] : o.index;
      out.chain.steps.push_back(std::move(step));
    }
    for (ChainStep step : to.chain.steps) {
      for (ChainOperand& o : step.operands) {
        if (!o.input) {
          o.index += shift;
        } else if (o.index == k) {
          o = shift > 0 ? ChainOperand{false, shift - 1} : ChainOperand{true, of_from[0]};
        } else {
          o.index = of_to[o.index];
        }
      }
      out.chain.steps.push_back(std::move(step));
    }
    return out;
  }

  // How the inputs of `from` are seen by a user that sees its result through `view`.
  std::optional<std::vector<std::pair<ValueId, ChainView>>> seen_through(
      const Part& from, const ChainView& view) const {
    std::vector<std::pair<ValueId, ChainView>> out;
    for (size_t i = 0; i < from.in.size(); ++i) {
      const ChainView& own = from.chain.view(i);
      const bool whole = viewed(own, graph_.desc(from.in[i]).shape) == from.shape;
      if (view.plain()) {
        out.emplace_back(from.in[i], own);
      } else if (own.plain() && one_element(from.in[i])) {
        out.emplace_back(from.in[i], own);
      } else if (whole && own.plain()) {
        out.emplace_back(from.in[i], view);
      } else if (whole && own.axes.empty() && view.cut.empty()) {
        out.emplace_back(from.in[i], ChainView{own.cut, view.axes});
      } else {
        return std::nullopt;
      }
    }
    return out;
  }

  // Puts the producer of an input in front of `to`, if that helps; `made` counts the reshapes that
  // come before the node.
  std::optional<Part> with_producer(const Part& to, size_t k) {
    const auto at = producer_.find(to.in[k]);
    if (at == producer_.end() || !done_[at->second]) return std::nullopt;
    const Node& node = *done_[at->second];
    if (node.op->name == "reshape") return through_reshape(to, k, node);
    const std::optional<Part> from = part_of(node);
    if (!from) return std::nullopt;
    const bool constant = node.op->name == "full";
    const bool copies = from->moves_only() && !from->in.empty() && from->chain.view(0).plain();
    if (uses_[to.in[k]] > 1 && !constant && !copies) return std::nullopt;
    if (is_output(to.in[k])) return std::nullopt;
    const ChainView& view = to.chain.view(k);
    const Shape seen = viewed(view, from->shape);
    // A small result, stretched afterwards, is computed once.
    if (seen != to.shape && !constant && !from->moves_only()) return std::nullopt;
    const auto inputs = seen_through(*from, view);
    if (!inputs) return std::nullopt;
    return merged(*from, to, k, *inputs);
  }

  // `reshape` of a result that is flat: its inputs are reshaped instead, which costs nothing.
  std::optional<Part> through_reshape(const Part& to, size_t k, const Node& reshape) {
    const auto at = producer_.find(reshape.in[0]);
    if (uses_[to.in[k]] != 1 || uses_[reshape.in[0]] != 1 || at == producer_.end() ||
        !done_[at->second] || is_output(to.in[k]) || !to.chain.view(k).plain())
      return std::nullopt;
    const std::optional<Part> from = part_of(*done_[at->second]);
    const Shape shape = graph_.desc(to.in[k]).shape;
    if (!from || from->moves_only() || from->in.empty() || !flat(*from) || shape != to.shape)
      return std::nullopt;
    if (from->in.size() + to.in.size() > Chain::kMostInputs) return std::nullopt;
    std::vector<std::pair<ValueId, ChainView>> inputs;
    for (const ValueId v : from->in) {
      const bool number = graph_.desc(v).shape != from->shape;
      inputs.emplace_back(number ? v : reshaped(v, shape), ChainView());
    }
    return merged(*from, to, k, inputs);
  }

  ValueId reshaped(ValueId v, const Shape& shape) {
    Node node = graph_.detached("reshape", {v}, {{"shape", shape}});
    const ValueId out = node.out[0];
    producer_[out] = done_.size();
    ++uses_[v];
    done_.push_back(std::move(node));
    return out;
  }

  void absorb(Node& node) {
    std::optional<Part> part = part_of(node);
    if (!part || node.op->name == "full") return;
    bool changed = false;
    for (size_t k = 0; k < part->in.size();) {
      const ValueId v = part->in[k];
      const std::optional<Part> larger = with_producer(*part, k);
      if (!larger) {
        ++k;
        continue;
      }
      replace(v, *part, *larger);
      part = larger;
      changed = true;
      k = 0;
    }
    if (!changed) return;
    const std::vector<ValueId> out = node.out;
    node = graph_.detached("chain", part->in,
                           {{"program", part->chain.program()},
                            {"views", part->chain.views_text()},
                            {"shape", part->shape}});
    node.out = out;
  }

  // Counts the uses anew, and takes a producer away that has no user left.
  void replace(ValueId gone, const Part& before, const Part& after) {
    for (const ValueId v : distinct(before.in)) --uses_[v];
    for (const ValueId v : distinct(after.in)) ++uses_[v];
    while (uses_[gone] == 0) {
      std::optional<Node>& node = done_[producer_.at(gone)];
      const std::vector<ValueId> in = node->in;
      node.reset();
      for (const ValueId v : distinct(in)) --uses_[v];
      if (in.size() != 1 || producer_.count(in[0]) == 0 || !done_[producer_.at(in[0])]) break;
      gone = in[0];
    }
  }

  Graph& graph_;
  std::map<ValueId, size_t> uses_, producer_;  // producer_: into done_
  std::vector<ValueId> outputs_;
  std::vector<std::optional<Node>> done_;
};

}  // namespace

void fuse_elementwise(Graph& graph) { Fusion(graph).run(); }

}  // namespace netcl
