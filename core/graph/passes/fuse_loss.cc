// A loss and the gradient of the same logits become one node, where what the gradient is given does
// not depend on the loss.
#include <map>
#include <optional>
#include <set>

#include "core/graph/passes/list.h"

namespace netcl {

namespace {

class LossFusion {
 public:
  explicit LossFusion(Graph& graph) : graph_(graph) {
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      for (const ValueId v : graph.nodes()[i].out) producer_[v] = i;
    }
  }

  // True if something changed; the graph's nodes have other places then.
  bool run() {
    for (const char* op : {"cross_entropy", "cross_entropy_grad"}) {
      if (graph_.kept_ops().count(op) > 0) return false;
    }
    const std::vector<Node>& nodes = graph_.nodes();
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].op->name != "cross_entropy") continue;
      for (size_t j = i + 1; j < nodes.size(); ++j) {
        if (nodes[j].op->name == "cross_entropy_grad" && same_question(nodes[i], nodes[j]) &&
            fuse(i, j))
          return true;
      }
    }
    return false;
  }

 private:
  static bool same_question(const Node& loss, const Node& grad) {
    if (loss.in.size() + 1 != grad.in.size() || !(loss.attrs == grad.attrs)) return false;
    return loss.in[0] == grad.in[0] && loss.in[1] == grad.in[1] &&
           (loss.in.size() < 3 || loss.in[2] == grad.in[3]);
  }

  // The nodes from `first` on that make `value`.
  void add_makers(ValueId value, size_t first, std::set<size_t>& out) const {
    const auto at = producer_.find(value);
    if (at == producer_.end() || at->second < first || !out.insert(at->second).second) return;
    for (const ValueId v : graph_.nodes()[at->second].in) add_makers(v, first, out);
  }

  bool fuse(size_t loss, size_t grad) {
    std::set<size_t> makers;
    add_makers(graph_.nodes()[grad].in[2], loss, makers);
    for (const size_t i : makers) {
      if (i == loss || graph_.nodes()[i].op->collective) return false;
    }
    const Node first = graph_.nodes()[loss], second = graph_.nodes()[grad];
    Node both = graph_.detached("cross_entropy_with_grad", second.in, second.attrs);
    both.out = {first.out[0], first.out[1], second.out[0]};
    std::vector<Node> nodes = std::move(graph_.mutable_nodes()), kept;
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (i == loss) {
        for (const size_t maker : makers) kept.push_back(nodes[maker]);
        kept.push_back(both);
      } else if (i != grad && makers.count(i) == 0) {
        kept.push_back(std::move(nodes[i]));
      }
    }
    graph_.mutable_nodes() = std::move(kept);
    return true;
  }

  Graph& graph_;
  std::map<ValueId, size_t> producer_;
};

}  // namespace

void fuse_loss(Graph& graph) {
  while (LossFusion(graph).run()) {
  }
}

}  // namespace netcl
