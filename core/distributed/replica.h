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
#include <optional>
#include <string>
#include <vector>

#include "core/distributed/hyper_table.h"
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
  // `share`: the whole blocks of the parameters that this replica updates and has the optimiser's
  // states of, where the group shares the update; otherwise all. Errors: kDevice; kUsage for an
  // optimiser that cannot share.
  Replica(const StepGraphs& graphs, const Optimizer& optimizer, KernelProvider& kernels,
          std::shared_ptr<Queue> queue, cl::Buffer send, cl::Buffer recv, int64_t max_rows,
          CompiledGraph::AllReduce all_reduce = nullptr, bool accumulates = false,
          std::optional<FloatRange> share = std::nullopt);

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
  // `reached`: called at the marks that mark_gradients() set.
  void forward_backward(int64_t rows, const StepRandom& random,
                        const CompiledGraph::Reached& reached = nullptr);
  // Sets marks where all of the named sums and gradients are enqueued, see CompiledGraph.
  void mark_gradients(const std::vector<std::vector<std::string>>& names) {
    train_.set_marks(names);
  }
  bool accumulates() const { return part_storage_ != nullptr; }
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
  // Makes an arena of statistics the next values, whatever the last pass computed.
  void put_next_statistics(const cl::Buffer& arena);
  // One optimiser step with the gradients in `recv`. `step` counts from 1. Where the group shares
  // the update: of this replica's share, with the sums and its share of the gradients in `recv`;
  // then put_parameters, an all_gather and take_parameters make the parameters whole. Collective
  // there if the gradient's norm is wanted.
  void update(int64_t step, double lr) { run_update(step, lr, true); }
  bool shares_update() const { return share_.has_value(); }
  // Which floats of the parameters' arena this replica updates, and its states hold.
  FloatRange state_range() const;
  // Copies this replica's share to its place behind the sums in `send`, and takes the whole from
  // there in `recv`: of the parameters, or of a state. A state that evaluation uses is taken to the
  // device; `to_host`: read_state() of this replica returns it until forget_states().
  void put_parameters();
  void take_parameters();
  void put_state(size_t index);
  void take_state(size_t index, bool to_host);
  void forget_states() { whole_states_.clear(); }
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
  // As StepGraphs::gradients lays out, reduced; not of a shared update, which uses their place.
  std::vector<float> read_gradients();
  // Arenas of graphs().plan.states, as long as the parameters. Of a shared update read_state
  // returns what take_state() brought here, and write_state keeps this replica's share.
  std::vector<float> read_state(size_t index);
  void write_state(size_t index, const std::vector<float>& arena);
  // What this replica has of a state: the floats of state_range().
  std::vector<float> read_state_range(size_t index);
  void write_state_range(size_t index, const std::vector<float>& values);

  const StepGraphs& graphs() const { return graphs_; }
  KernelProvider& kernels() { return kernels_; }
  const std::shared_ptr<Queue>& shared_queue() const { return queue_; }
  const cl::Buffer& send() const { return send_; }
  const cl::Buffer& recv() const { return recv_; }
  // The statistics that the last pass computed; null without statistics.
  const Storage* next_statistics() const { return next_statistics_.get(); }
  Queue& queue() { return *queue_; }
  size_t launches_per_step(int64_t rows) const {
    return train_.launches_per_run(rows) + update_.launches_per_run(0);
  }
  const CompiledGraph& train_graph() const { return train_; }
  const CompiledGraph& compiled_update() const { return update_; }

 private:
  cl::Buffer memory(const std::string& name, const TensorDesc& desc, bool evaluating);
  std::shared_ptr<Storage> table(const std::vector<int32_t>& values, const char* what);
  const Storage* whole_arena(const std::string& name) const;
  void make_arenas();
  void run_update(int64_t step, double lr, bool grouped);
  void copy(const cl::Buffer& from, const cl::Buffer& to, int64_t from_float, int64_t to_float,
            int64_t floats);
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
  const std::optional<FloatRange> share_;
  const UpdatePlan plan_;  // of this replica's share
  KernelProvider& kernels_;
  std::shared_ptr<Queue> queue_;
  cl::Buffer send_, recv_, part_;  // part_: send_ unless the replica accumulates
  int64_t max_rows_;
  int64_t last_rows_ = 0;  // of the last forward_backward
  size_t row_bytes_ = 0;   // of one sample on the device
  size_t label_bytes_ = 0, output_floats_ = 0;
  std::shared_ptr<Storage> x_, labels_, random_, parameters_, statistics_, next_statistics_,
      loss_scale_;
  std::shared_ptr<Storage> blocks_, slots_, norm_, part_storage_, average_;
  std::shared_ptr<Storage> updated_;  // the parameters, or this replica's share of them
  std::vector<std::vector<float>> whole_states_;
  std::optional<HyperTable> hyper_;
  std::vector<std::pair<std::string, std::shared_ptr<Storage>>> states_;
  std::shared_ptr<Storage> eval_sums_, output_;  // output_: made by the first forward()
  std::vector<std::pair<std::string, std::shared_ptr<Storage>>> constants_;
  CompiledGraph train_, eval_, update_, accumulate_, forward_;
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_REPLICA_H_
