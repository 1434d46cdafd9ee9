// FlatUpdate: the parameters of one replica as a flat arena, the optimiser's state beside it, and
// the update of both from reduced gradients. For parameters that no model describes; Replica has
// its own. Threads: the queue's.
#ifndef NETCL_CORE_DISTRIBUTED_FLAT_UPDATE_H_
#define NETCL_CORE_DISTRIBUTED_FLAT_UPDATE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/distributed/hyper_table.h"
#include "core/graph/compiled_graph.h"
#include "core/nn/arena.h"
#include "core/nn/update_graph.h"

namespace netcl {

// Where the reduced gradients lie: floats of the whole arena, where the parameters' own begin in
// it, and the denominator that divides them.
struct GradientPlaces {
  int64_t num_floats = 0, first = 0, denominator = 0;
};

class FlatUpdate {
 public:
  // `gradients` is laid out like `parameters` from places.first on. Errors: kUsage for an optimiser
  // that does not fit; kDevice, kPlugin.
  FlatUpdate(const ArenaLayout& parameters, const Optimizer& optimizer, KernelProvider& kernels,
             std::shared_ptr<Queue> queue, cl::Buffer gradients, const GradientPlaces& places);

  const cl::Buffer& parameters() const { return parameters_->buffer(); }
  // Writes the parameters (a whole arena) and begins with the state before the first step; waits.
  void start(const std::vector<float>& arena);
  // Enqueues a step; `step` counts from 1.
  void step(int64_t step, double lr);

 private:
  using Named = std::pair<std::string, std::shared_ptr<Storage>>;
  std::shared_ptr<Storage> table(const std::vector<int32_t>& values, const std::string& what);
  void write(const Storage& to, const std::vector<float>& values);
  cl::Buffer memory(const std::string& name);

  const Optimizer optimizer_;
  const UpdatePlan plan_;
  const int64_t num_floats_;
  std::shared_ptr<Queue> queue_;
  cl::Buffer gradients_, divisor_;
  std::shared_ptr<Storage> parameters_;
  HyperTable hyper_;
  std::vector<Named> others_;  // tables, norm and states, by their name in the graph
  CompiledGraph update_;
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_FLAT_UPDATE_H_
