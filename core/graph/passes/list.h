// Every pass, by the name of its file.
#ifndef NETCL_CORE_GRAPH_PASSES_LIST_H_
#define NETCL_CORE_GRAPH_PASSES_LIST_H_

#include "core/graph/graph.h"

namespace netcl {

// Removes nodes whose results nobody needs.
void drop_dead(Graph& graph);

// Moves an activation (relu, tanh, sigmoid) that is the only user of a matmul's result into the
// matmul. Their gradients need the activation's output only, so the sum before it is not stored.
void fuse_matmul_activation(Graph& graph);

// Makes constants in the size to which they are stretched.
void fold_constants(Graph& graph);

// Puts cross_entropy and its gradient into one node.
void fuse_loss(Graph& graph);

// Exchanges relu and max pooling, and their gradients.
void relu_after_pool(Graph& graph);

// Makes concatenations of sums of padded parts that make up a whole.
void join_pads(Graph& graph);

// Makes chains of elementwise ops (core/ops/chain.h).
void fuse_elementwise(Graph& graph);

}  // namespace netcl

#endif  // NETCL_CORE_GRAPH_PASSES_LIST_H_
