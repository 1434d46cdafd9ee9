// Rewrites of a finished graph. Each is small, has a file of its own in core/graph/passes, keeps
// the graph's outputs equal up to rounding, and can be left out. What a pass does depends on the
// graph alone, so replicas of a group decide alike.
#ifndef NETCL_CORE_GRAPH_PASSES_H_
#define NETCL_CORE_GRAPH_PASSES_H_

#include <string>
#include <vector>

#include "core/graph/graph.h"

namespace netcl {

struct Pass {
  const char* name;
  const char* does;  // for people
  void (*run)(Graph&);
};

// All passes, in their order.
const std::vector<Pass>& passes();

// "a,b" or "all" as names of passes. Errors: kUsage with the nearest name.
std::set<std::string> passes_named(const std::vector<std::string>& names);

// What a pass did to a graph.
struct PassEffect {
  std::string name;
  bool left_out = false;
  size_t nodes_before = 0, nodes_after = 0;  // views, which cost nothing, are not counted
};

// Runs all passes but those that the graph leaves out (Graph::leave_out).
std::vector<PassEffect> run_passes(Graph& graph);

}  // namespace netcl

#endif  // NETCL_CORE_GRAPH_PASSES_H_
