// What a step has to do, whatever device does it: an estimate for those who divide work before
// anything is compiled. Threads: any (a pure function).
#ifndef NETCL_CORE_GRAPH_STEP_WORK_H_
#define NETCL_CORE_GRAPH_STEP_WORK_H_

#include <cstdint>

#include "core/graph/graph.h"

namespace netcl {

struct StepWork {
  int64_t launches = 0;      // nodes that compute something
  double multiply_adds = 0;  // of products, convolutions and attention
  double elements = 0;       // read and written by all other nodes

  StepWork& operator+=(const StepWork& other);
};

// Of one run of the graph with `batch` samples.
StepWork work_of(const Graph& graph, int64_t batch);

}  // namespace netcl

#endif  // NETCL_CORE_GRAPH_STEP_WORK_H_
