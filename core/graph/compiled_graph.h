// CompiledGraph: a graph made ready for one device, replayed without any decision.
//
// For each batch size an *instance* is prepared once: concrete shapes, a kernel for every node (of
// a fused op that none serves the recorded ops stand in its place), temporaries placed in a
// workspace, all kernel arguments set. Running it enqueues its launches and nothing else. Prepare
// instances before step 1, not in the middle of training. Threads: the queue's.
#ifndef NETCL_CORE_GRAPH_COMPILED_GRAPH_H_
#define NETCL_CORE_GRAPH_COMPILED_GRAPH_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/memory_plan.h"
#include "core/ops/kernel_provider.h"
#include "core/tensor/queue.h"

namespace netcl {

// How a node of a prepared instance is computed.
struct PlannedNode {
  std::string text;    // "relu(f32[128,10]) -> f32[128,10]"
  std::string kernel;  // "generic/vec"; empty for a sum over the replicas
  size_t launches = 0;
  size_t bytes = 0;                  // of its inputs and outputs
  std::vector<std::string> entries;  // the kernels that are launched
};

class CompiledGraph {
 public:
  // Memory of an external or output: a buffer that starts at the tensor. Called while an instance
  // is prepared; `desc` is concrete.
  using Memory = std::function<cl::Buffer(const std::string& name, const TensorDesc& desc)>;

  // Adds `in` up over the replicas of a step into `out`, in the queue's order. Every replica of a
  // group runs the same graph, so all ask for the same sums in the same order.
  using AllReduce =
      std::function<void(const cl::Buffer& in, const cl::Buffer& out, const TensorDesc& desc)>;

  // Without `all_reduce` the graph is a group of its own: its sums are its inputs.
  CompiledGraph(Graph graph, KernelProvider& kernels, std::shared_ptr<Queue> queue, Memory memory,
                AllReduce all_reduce = nullptr);

  // Prepares the instance for a batch size (0 is allowed) unless it exists. Errors: kDevice (a
  // tensor that the device cannot hold is named before anything is allocated), kPlugin.
  void prepare(int64_t batch);
  // Enqueues the instance's launches; prepares it if need be. Not `grouped`: no replica is waited
  // for, sums are their inputs (to launch everything once before training). Errors: kDevice.
  void run(int64_t batch, bool grouped = true) { run(batch, grouped, nullptr); }

  // A mark is the place in a run after which everything that writes the named outputs is enqueued.
  // Places come from the graph alone, so replicas of a group pass them in one order, also between
  // the sums of a step and whatever the batch. Errors: kInternal for a name that is no output.
  void set_marks(const std::vector<std::vector<std::string>>& outputs);
  // Called at every mark with its index, in the order of the places.
  using Reached = std::function<void(size_t mark)>;
  void run(int64_t batch, bool grouped, const Reached& reached);

  const Graph& graph() const { return graph_; }
  // Every node of the prepared instance that costs something, in order.
  const std::vector<PlannedNode>& plan(int64_t batch) const { return instances_.at(batch)->plan; }
  size_t launches_per_run(int64_t batch) const { return instances_.at(batch)->num_launches; }
  // Bytes of temporaries of the largest instance, and their sum without sharing.
  size_t workspace_bytes() const { return workspace_bytes_; }
  size_t temporaries_bytes() const { return temporaries_bytes_; }

 private:
  struct Reduction {
    size_t before;  // the executable that it precedes
    cl::Buffer in, out;
    TensorDesc desc;
  };
  // Order and reductions come from the graph as it was given, the same on every device; how many
  // executables it takes differs where fused ops are served differently.
  struct Mark {
    size_t index;
    std::vector<std::string> outputs;
    size_t place = 0;       // nodes of the graph before it
    size_t reductions = 0;  // sums before it
  };
  struct Instance {
    std::vector<std::shared_ptr<Storage>> workspace;  // one buffer a slot
    std::vector<Executable> executables;
    std::vector<Reduction> reductions;      // in order
    std::map<std::string, size_t> written;  // executables after which an output holds its value
    size_t num_launches = 0;
    std::vector<PlannedNode> plan;
  };
  std::unique_ptr<Instance> make_instance(int64_t batch);
  std::unique_ptr<Instance> make_instance(const Graph& graph, int64_t batch);
  void check_sizes(const Graph& graph, int64_t batch) const;
  void launch(const Executable& executable) const;
  void copy_sum(const Reduction& reduction) const;
  std::vector<std::shared_ptr<Storage>> take_workspace(const MemoryPlan& plan);
  void check_workspace(const Graph& graph, const MemoryPlan& plan, int64_t batch) const;

  const Graph graph_;
  KernelProvider& kernels_;
  std::shared_ptr<Queue> queue_;
  Memory memory_;
  AllReduce all_reduce_;
  std::vector<Mark> marks_;  // in order
  std::map<int64_t, std::unique_ptr<Instance>> instances_;
  std::vector<std::shared_ptr<Storage>> workspace_;  // slots, shared by all instances that fit
  size_t workspace_bytes_ = 0, temporaries_bytes_ = 0;
};

}  // namespace netcl

#endif  // NETCL_CORE_GRAPH_COMPILED_GRAPH_H_
