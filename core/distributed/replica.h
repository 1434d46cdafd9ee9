// Replica: one copy of a model on one device, with its arenas and its compiled steps.
//
// Everything is enqueued on the replica's queue and returns at once, except read_* and write_*.
// The gradient arena's memory belongs to whoever reduces it (a transport's bucket, or the replica's
// own buffer when it is alone): kernels write `send`, the update reads `recv`.
// Threads: the queue's.
#ifndef NETCL_CORE_DISTRIBUTED_REPLICA_H_
#define NETCL_CORE_DISTRIBUTED_REPLICA_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/compiled_graph.h"
#include "core/nn/step_graphs.h"

namespace netcl {

// Which global rows a shard holds and how its random numbers are keyed.
struct StepRandom {
  uint64_t seed = 0;
  int64_t step = 0;       // counts from 1
  int64_t first_row = 0;  // index of the shard's first row in the global batch

  std::array<int32_t, 8> words() const;  // the op contract's random state
};

// Fails if an arena or the batch is larger than what the device allocates in one piece, before
// anything is. `max_rows`: see Replica. Errors: kDevice, naming the tensor and its largest part.
void require_room(const StepGraphs& graphs, int64_t max_rows, const DeviceInfo& device);

class Replica {
 public:
  // `send`, `recv`: gradient arenas of graphs.gradients.num_floats() floats. `max_rows`: the
  // most rows that will be staged at once. `all_reduce`: see CompiledGraph; nullptr when alone.
  // `accumulates`: a step may be made of several passes, see accumulate().
  // Errors: kDevice.
  Replica(const StepGraphs& graphs, const Optimizer& optimizer, KernelProvider& kernels,
          std::shared_ptr<Queue> queue, cl::Buffer send, cl::Buffer recv, int64_t max_rows,
          CompiledGraph::AllReduce all_reduce = nullptr, bool accumulates = false);

  // Prepares the kernels of a shard size, so that no step pays for it. Errors: kDevice, kPlugin.
  void prepare_train(int64_t rows) { train_.prepare(rows); }
  // Runs all three graphs once, on whatever was staged last and without the other replicas;
  // parameters and state stay as they are.
  void warm_up(int64_t rows);

  // Copies a shard to the device: `rows` samples of input_bytes() and label_bytes(). x and labels
  // must stay valid until the returned event; without labels (null) only forward() makes sense.
  cl::Event stage(const void* x, const void* labels, int64_t rows);
  // What one sample takes on the device.
  size_t input_bytes() const { return row_bytes_; }
  size_t label_bytes() const { return label_bytes_; }
  // Sums and gradients of the staged rows into `send`, or, if the replica accumulates, into a part
  // that accumulate() takes from there.
  void forward_backward(int64_t rows, const StepRandom& random);
  // Adds the part to `send`, or begins with it; the statistics of the pass count from then on.
  void accumulate(bool first);
  // The evaluation's sums only, with the average of the parameters where the optimiser says so;
  // read_eval_sums fetches them.
  void evaluate(int64_t rows);
  // The model's output for the staged rows, as in evaluation; read_output fetches it, row by row
  // (output_floats() each). Waits for the device.
  void forward(int64_t rows);
  std::vector<float> read_output(int64_t rows);
  size_t output_floats() const { return output_floats_; }
  // Makes the statistics that forward_backward computed the ones that are used. `update` does it;
  // several passes before one update need it between them. After a pass without rows those that
  // each replica computes for itself stay as they were: nothing was seen.
  void commit_statistics();
  // One optimiser step with the gradients in `recv`. `step` counts from 1.
  void update(int64_t step, double lr);
  // Starts copying the sums to `out`, graphs().sums_floats floats as the gradient arena holds them:
  // those of all replicas (`reduced`, from recv) or this one's (from send). With `reduced` the norm
  // of the last update's gradient follows, where it is measured: sums_size() floats in all.
  // Valid after the event.
  size_t sums_size() const;
  bool measures_norm() const { return norm_ != nullptr; }
  cl::Event read_sums(float* out, bool reduced);
  // Starts copying the evaluation's sums to `out`, as laid out by graphs().eval_sums.
  cl::Event read_eval_sums(float* out);
  // An event after everything enqueued so far; flushes.
  cl::Event marker();

  // Values of initial_values() for every slot; the optimiser's state becomes what it is before the
  // first step.
  void initialise(uint64_t seed);
  // The optimiser's state before the first step, for the parameters as they are.
  void reset_state();
  // Whole arenas as laid out by StepGraphs::parameters; wait for the device.
  std::vector<float> read_parameters();
  void write_parameters(const std::vector<float>& arena);
  // Enqueues a copy of the parameters to or from `buffer`, where they lie `offset` floats behind
  // its beginning.
  void copy_parameters_to(const cl::Buffer& buffer, int64_t offset);
  void copy_parameters_from(const cl::Buffer& buffer, int64_t offset);
  // As laid out by StepGraphs::statistic_values: those in use. Empty if there are none.
  // Scale and good steps (core/nn/loss_scale.h); without loss scaling nothing reads them.
  std::array<float, 2> read_loss_scale();
  void write_loss_scale(const std::array<float, 2>& state);
  std::vector<float> read_statistics();
  void write_statistics(const std::vector<float>& arena);
  std::vector<float> read_gradients();  // as laid out by StepGraphs::gradients, reduced
  // Arenas of graphs().plan.states.
  std::vector<float> read_state(size_t index);
  void write_state(size_t index, const std::vector<float>& arena);

  const StepGraphs& graphs() const { return graphs_; }
  Queue& queue() { return *queue_; }
  size_t launches_per_step(int64_t rows) const {
    return train_.launches_per_run(rows) + update_.launches_per_run(0);
  }
  const CompiledGraph& train_graph() const { return train_; }

 private:
  cl::Buffer memory(const std::string& name, const TensorDesc& desc, bool evaluating);
  std::shared_ptr<Storage> table(const std::vector<int32_t>& values, const char* what);
  const Storage* whole_arena(const std::string& name) const;
  void write_hyper(int64_t step, double lr);
  cl::Buffer eval_memory(const std::string& name, const TensorDesc& desc);
  cl::Buffer forward_memory(const std::string& name, const TensorDesc& desc);
  void write_constants();
  void clear_gradients();
  void write_random(const StepRandom& random);
  void write(const cl::Buffer& buffer, const void* bytes, size_t size, const char* what);
  std::vector<float> read_arena(const cl::Buffer& buffer, const ArenaLayout& layout);
  void write_arena(const cl::Buffer& buffer, const ArenaLayout& layout,
                   const std::vector<float>& arena);

  const StepGraphs& graphs_;
  const Optimizer optimizer_;
  std::shared_ptr<Queue> queue_;
  cl::Buffer send_, recv_, part_;  // part_: send_ unless the replica accumulates
  int64_t max_rows_;
  int64_t last_rows_ = 0;  // of the last forward_backward
  size_t row_bytes_ = 0;   // of one sample on the device
  size_t label_bytes_ = 0, output_floats_ = 0;
  std::shared_ptr<Storage> x_, labels_, random_, hyper_, parameters_, statistics_, next_statistics_,
      loss_scale_;
  std::shared_ptr<Storage> blocks_, slots_, norm_, part_storage_, average_;
  std::vector<std::array<float, 16>> hyper_values_;  // as the device has them; empty: unknown
  std::vector<std::pair<std::string, std::shared_ptr<Storage>>> states_;
  std::shared_ptr<Storage> eval_sums_, output_;  // output_: made by the first forward()
  std::vector<std::pair<std::string, std::shared_ptr<Storage>>> constants_;
  CompiledGraph train_, eval_, update_, accumulate_, forward_;
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_REPLICA_H_
