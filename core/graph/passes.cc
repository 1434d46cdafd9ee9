#include "core/graph/passes.h"

#include <algorithm>
#include <map>
#include <set>

namespace netcl {

void drop_dead_nodes(Graph& graph) {
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

void fuse_matmul_activation(Graph& graph) {
  static const std::set<std::string> kFusable = {"relu", "tanh", "sigmoid"};
  std::vector<Node>& nodes = graph.mutable_nodes();
  std::map<ValueId, size_t> uses, producer;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const ValueId v : nodes[i].in) ++uses[v];
    for (const ValueId v : nodes[i].out) producer[v] = i;
  }
  for (const Graph::Place& place : graph.outputs()) ++uses[place.value];
  std::vector<bool> dead(nodes.size(), false);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (kFusable.count(nodes[i].op->name) == 0) continue;
    const ValueId x = nodes[i].in[0];
    const auto from = producer.find(x);
    if (from == producer.end() || uses[x] != 1) continue;
    Node& matmul = nodes[from->second];
    if (matmul.op->name != "matmul" || matmul.attrs.text("activation") != "none") continue;
    matmul.attrs.set("activation", nodes[i].op->name);
    matmul.out = nodes[i].out;
    dead[i] = true;
  }
  std::vector<Node> kept;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!dead[i]) kept.push_back(std::move(nodes[i]));
  }
  nodes = std::move(kept);
}

void run_passes(Graph& graph) {
  drop_dead_nodes(graph);
  fuse_matmul_activation(graph);
}

}  // namespace netcl
