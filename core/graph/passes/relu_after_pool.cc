// max_pool(relu(x)) becomes relu(max_pool(x)), and their gradients in the other order: the same
// values from a fraction of the elements. Where the maximum is positive, it is the same element;
// where it is not, the result is 0 and so is its gradient, wherever the maximum lies.
#include <map>
#include <optional>

#include "core/graph/passes/list.h"

namespace netcl {

namespace {

bool is_max_pool(const Node& node) {
  return node.op->name == "max_pool2d" || node.op->name == "adaptive_max_pool2d";
}

// Indices of the nodes around one relu.
struct Found {
  size_t relu = 0, pool = 0;
  std::optional<size_t> pool_grad, relu_grad;
};

class Search {
 public:
  explicit Search(const Graph& graph) : graph_(graph) {
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      for (const ValueId v : graph.nodes()[i].in) users_[v].push_back(i);
    }
    for (const Graph::Place& place : graph.outputs()) users_[place.value].push_back(kOutput);
  }

  std::optional<Found> at(size_t relu) const {
    const std::vector<Node>& nodes = graph_.nodes();
    if (nodes[relu].op->name != "relu") return std::nullopt;
    Found out{relu, 0, std::nullopt, std::nullopt};
    bool pooled = false;
    for (const size_t user : users_of(nodes[relu].out[0])) {
      if (user == kOutput) return std::nullopt;
      if (is_max_pool(nodes[user]) && !pooled) {
        out.pool = user;
        pooled = true;
      } else if (nodes[user].op->name == "relu_grad" && !out.relu_grad &&
                 nodes[user].in[0] != nodes[relu].out[0]) {
        out.relu_grad = user;
      } else {
        return std::nullopt;
      }
    }
    if (!pooled) return std::nullopt;
    return with_gradient(out) ? std::make_optional(out) : std::nullopt;
  }

 private:
  static constexpr size_t kOutput = ~size_t{0};

  const std::vector<size_t>& users_of(ValueId v) const {
    static const std::vector<size_t> kNone;
    const auto found = users_.find(v);
    return found == users_.end() ? kNone : found->second;
  }

  // The places of the maxima lead to the gradient alone, and what that yields to relu's alone.
  bool with_gradient(Found& found) const {
    const std::vector<Node>& nodes = graph_.nodes();
    const std::vector<size_t>& of_index = users_of(nodes[found.pool].out[1]);
    if (!found.relu_grad) return of_index.empty();
    if (of_index.size() != 1 || of_index[0] == kOutput) return false;
    const Node& grad = nodes[of_index[0]];
    if (grad.op->name != nodes[found.pool].op->name + "_grad") return false;
    found.pool_grad = of_index[0];
    const std::vector<size_t>& of_grad = users_of(grad.out[0]);
    return of_grad.size() == 1 && of_grad[0] == *found.relu_grad &&
           nodes[*found.relu_grad].in[0] == grad.out[0];
  }

  const Graph& graph_;
  std::map<ValueId, std::vector<size_t>> users_;
};

// Everything but the pools is elementwise, so exchanging two nodes keeps all other values.
void exchange(Graph& graph, const Found& found) {
  std::vector<Node>& nodes = graph.mutable_nodes();
  const ValueId x = nodes[found.relu].in[0], y = nodes[found.pool].out[0];
  Node pool = graph.detached(nodes[found.pool].op->name, {x}, nodes[found.pool].attrs);
  Node relu = graph.detached("relu", {pool.out[0]});
  pool.out[1] = nodes[found.pool].out[1];
  relu.out = {y};
  nodes[found.relu] = std::move(pool);
  nodes[found.pool] = std::move(relu);
  if (!found.relu_grad) return;
  const Node first = nodes[*found.pool_grad], second = nodes[*found.relu_grad];
  Node relu_grad = graph.detached("relu_grad", {first.in[0], y});
  Node pool_grad = graph.detached(first.op->name, {relu_grad.out[0], first.in[1]}, first.attrs);
  pool_grad.out = second.out;
  nodes[*found.pool_grad] = std::move(relu_grad);
  nodes[*found.relu_grad] = std::move(pool_grad);
}

}  // namespace

void relu_after_pool(Graph& graph) {
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (const auto found = Search(graph).at(i)) exchange(graph, *found);
  }
}

}  // namespace netcl
