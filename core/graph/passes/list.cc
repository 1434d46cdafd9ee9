#include "core/graph/passes/list.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/passes.h"

namespace netcl {

const std::vector<Pass>& passes() {
  static const std::vector<Pass> kPasses = {
      {"drop_dead", "removes nodes whose results nobody needs", drop_dead},
      {"fuse_matmul_activation", "relu, tanh and sigmoid behind a product become part of it",
       fuse_matmul_activation},
      {"fold_constants", "a constant that is stretched is made in its size at once",
       fold_constants},
      {"fuse_loss", "cross entropy and its gradient are computed at once", fuse_loss},
      {"relu_after_pool", "relu comes behind max pooling, where there are fewer elements",
       relu_after_pool},
      {"join_pads", "the gradients of slices side by side are joined, not padded and added",
       join_pads},
      {"fuse_elementwise",
       "elementwise ops one after the other, and changes of layout before them, "
       "become one",
       fuse_elementwise},
  };
  return kPasses;
}

std::set<std::string> passes_named(const std::vector<std::string>& names) {
  std::vector<std::string> known = {"all"};
  for (const Pass& pass : passes()) known.emplace_back(pass.name);
  std::set<std::string> out;
  for (const std::string& name : names) {
    NETCL_CHECK(std::find(known.begin(), known.end(), name) != known.end(), ErrorCode::kUsage,
                "there is no pass \"", name, "\"", suggest(name, known));
    if (name != "all") out.insert(name);
    if (name == "all") out.insert(known.begin() + 1, known.end());
  }
  return out;
}

std::vector<PassEffect> run_passes(Graph& graph) {
  const auto count = [&] {
    return static_cast<size_t>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                             [](const Node& node) { return !node.op->view; }));
  };
  std::vector<PassEffect> out;
  for (const Pass& pass : passes()) {
    PassEffect effect{pass.name, graph.left_out().count(pass.name) > 0, count(), 0};
    if (!effect.left_out) pass.run(graph);
    effect.nodes_after = count();
    out.push_back(std::move(effect));
  }
  return out;
}

}  // namespace netcl
