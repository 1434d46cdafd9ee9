#include <map>
#include <set>

#include "core/graph/passes/list.h"

namespace netcl {

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
    const std::string& name = nodes[i].op->name;
    if (kFusable.count(name) == 0 || graph.kept_ops().count(name) > 0) continue;
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

}  // namespace netcl
