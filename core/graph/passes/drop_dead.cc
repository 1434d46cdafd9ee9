#include <algorithm>
#include <set>

#include "core/graph/passes/list.h"

namespace netcl {

void drop_dead(Graph& graph) {
  std::set<ValueId> needed;
  for (const Graph::Place& place : graph.outputs()) needed.insert(place.value);
  std::vector<Node>& nodes = graph.mutable_nodes();
  std::vector<Node> kept;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    const bool used = std::any_of(node->out.begin(), node->out.end(),
                                  [&](ValueId v) { return needed.count(v) > 0; });
    if (!used) continue;
    needed.insert(node->in.begin(), node->in.end());
    kept.push_back(std::move(*node));
  }
  std::reverse(kept.begin(), kept.end());
  nodes = std::move(kept);
}

}  // namespace netcl
