// A constant that is stretched is made in its size at once.
#include <map>

#include "core/graph/passes/list.h"

namespace netcl {

void fold_constants(Graph& graph) {
  std::map<ValueId, Node> constants;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node node = graph.nodes()[i];
    const auto constant = node.in.size() == 1 ? constants.find(node.in[0]) : constants.end();
    if (node.op->name == "broadcast_to" && constant != constants.end()) {
      Attrs attrs = constant->second.attrs;
      attrs.set("shape", node.attrs.shape("shape"));
      Node larger = graph.detached("full", {}, attrs);
      larger.out = node.out;
      graph.mutable_nodes()[i] = std::move(larger);
    }
    // A view of a constant is one for this purpose, as it has one value.
    if (node.op->name == "full") constants.emplace(node.out[0], node);
    if (node.op->name == "reshape" && constant != constants.end())
      constants.emplace(node.out[0], Node(constant->second));
    if (node.op->name == "broadcast_to" && constant != constants.end())
      constants.emplace(node.out[0], graph.nodes()[i]);
  }
  drop_dead(graph);
}

}  // namespace netcl
