// Lowering: a graph with fused ops becomes one for a device, on which each of them is either one
// node, computed by kernels, or the ops that were recorded for it.
#ifndef NETCL_CORE_GRAPH_LOWER_H_
#define NETCL_CORE_GRAPH_LOWER_H_

#include <functional>

#include "core/graph/graph.h"

namespace netcl {

bool has_fused(const Graph& graph);

// The graph with the recorded ops in place of every fused node for which `served` says no; passes
// have run. The gradient of a forward op that is not served uses the ops of the forward op, so a
// graph of which nothing is served is the one that would have been recorded without fused ops.
Graph lower(const Graph& graph, const std::function<bool(const Node&)>& served);

}  // namespace netcl

#endif  // NETCL_CORE_GRAPH_LOWER_H_
