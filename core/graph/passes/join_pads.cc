// The gradients of slices that lie side by side and make up the whole: a sum of padded parts
// becomes their concatenation.
#include <algorithm>
#include <map>
#include <optional>

#include "core/graph/passes/list.h"

namespace netcl {

namespace {

constexpr size_t kMostParts = 8;  // of concat

// A part of the whole: where it begins along the axis, and how long it is.
struct Piece {
  ValueId value;
  size_t axis;
  int64_t low, length;
};

std::optional<Piece> piece_of(const Graph& graph, const Node& node) {
  if (node.op->name != "pad" || node.attrs.number("value") != 0) return std::nullopt;
  const auto &low = node.attrs.integers("low"), &high = node.attrs.integers("high"),
             &step = node.attrs.integers("step");
  if (std::any_of(step.begin(), step.end(), [](int64_t s) { return s != 1; })) return std::nullopt;
  std::optional<size_t> axis;
  for (size_t d = 0; d < low.size(); ++d) {
    if (low[d] == 0 && high[d] == 0) continue;
    if (axis) return std::nullopt;
    axis = d;
  }
  if (!axis) return std::nullopt;
  return Piece{node.in[0], *axis, low[*axis], graph.desc(node.in[0]).shape[*axis]};
}

class Join {
 public:
  explicit Join(Graph& graph) : graph_(graph) {
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      for (const ValueId v : graph.nodes()[i].in) ++uses_[v];
      for (const ValueId v : graph.nodes()[i].out) producer_[v] = i;
    }
    for (const Graph::Place& place : graph.outputs()) ++uses_[place.value];
  }

  void run() {
    for (size_t i = graph_.nodes().size(); i-- > 0;) {
      const Node node = graph_.nodes()[i];
      std::vector<Piece> pieces;
      if (node.op->name != "add" || !collect(node, pieces)) continue;
      std::sort(pieces.begin(), pieces.end(),
                [](const Piece& a, const Piece& b) { return a.low < b.low; });
      if (!whole(pieces, graph_.desc(node.out[0]).shape)) continue;
      std::vector<ValueId> in;
      for (const Piece& piece : pieces) in.push_back(piece.value);
      Node concat = graph_.detached("concat", in, {{"axis", static_cast<int64_t>(pieces[0].axis)}});
      concat.out = node.out;
      graph_.mutable_nodes()[i] = std::move(concat);
    }
    drop_dead(graph_);
  }

 private:
  // The parts that a sum adds up; false if it adds anything else.
  bool collect(const Node& sum, std::vector<Piece>& pieces) const {
    for (const ValueId v : sum.in) {
      const auto at = producer_.find(v);
      if (at == producer_.end() || uses_.at(v) != 1) return false;
      const Node& node = graph_.nodes()[at->second];
      if (node.op->name == "add") {
        if (!collect(node, pieces)) return false;
        continue;
      }
      const auto piece = piece_of(graph_, node);
      if (!piece) return false;
      pieces.push_back(*piece);
    }
    return pieces.size() <= kMostParts;
  }

  static bool whole(const std::vector<Piece>& pieces, const Shape& shape) {
    int64_t end = 0;
    for (const Piece& piece : pieces) {
      if (piece.axis != pieces[0].axis || piece.low != end) return false;
      end += piece.length;
    }
    return end == shape[pieces[0].axis];
  }

  Graph& graph_;
  std::map<ValueId, size_t> uses_, producer_;
};

}  // namespace

void join_pads(Graph& graph) { Join(graph).run(); }

}  // namespace netcl
