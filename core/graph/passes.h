// Rewrites of a finished graph. Each is small, keeps the graph's outputs equal, and can be left
// out.
#ifndef NETCL_CORE_GRAPH_PASSES_H_
#define NETCL_CORE_GRAPH_PASSES_H_

#include "core/graph/graph.h"

namespace netcl {

// Removes nodes whose results nobody needs.
void drop_dead_nodes(Graph& graph);

// Moves an activation (relu, tanh, sigmoid) that is the only user of a matmul's result into the
// matmul. Their gradients need the activation's output only, so the sum before it is not stored.
void fuse_matmul_activation(Graph& graph);

// All passes, in their order.
void run_passes(Graph& graph);

}  // namespace netcl

#endif  // NETCL_CORE_GRAPH_PASSES_H_
