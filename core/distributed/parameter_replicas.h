// ParameterReplicas: copies of a list of parameters on several queues of one process, trained with
// a step function that the program writes from ops. As with Replicas, the result is that of one
// device with the whole batch.
//
// The step function sees one replica's shard on a tape and returns the *sum* of its losses and
// their denominator. Its gradients are put side by side into one buffer, added up over the
// replicas, divided once, and given to the optimiser.
// Ownership: borrows the Runtime, which outlives it. Threads: one at a time.
#ifndef NETCL_CORE_DISTRIBUTED_PARAMETER_REPLICAS_H_
#define NETCL_CORE_DISTRIBUTED_PARAMETER_REPLICAS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/autograd/tape.h"
#include "core/distributed/batch.h"
#include "core/distributed/broadcast_policy.h"
#include "core/distributed/flat_update.h"
#include "core/distributed/gradient_buckets.h"
#include "core/distributed/queue_group.h"
#include "core/nn/loss.h"

namespace netcl {

struct Parameter {
  std::string name;
  Shape shape;
  std::vector<float> values;  // row-major
};

// Parameters with their initial values, which depend on seed, position and shape alone.
class ParameterList {
 public:
  explicit ParameterList(uint64_t seed = 0) : seed_(seed) {}

  // Each appends one. Errors: kUsage for a name given twice, or values that do not fit the shape.
  ParameterList& uniform(const std::string& name, const Shape& shape, double limit);
  ParameterList& normal(const std::string& name, const Shape& shape, double deviation);
  ParameterList& constant(const std::string& name, const Shape& shape, double value);
  ParameterList& values(const std::string& name, const Shape& shape, std::vector<float> values);

  const std::vector<Parameter>& all() const { return parameters_; }

 private:
  ParameterList& drawn(const std::string& name, const Shape& shape, uint32_t init, double a,
                       double b);

  uint64_t seed_;
  std::vector<Parameter> parameters_;
};

// Records the step of a shard on the tape: x [rows, sample...], y [rows, label...], at least one
// row; the parameters in the order of the list. Returns two sums, f32 of one element.
using StepFunction = std::function<LossSums(Tape& tape, const std::vector<ValueId>& parameters,
                                            ValueId x, ValueId y)>;

struct ParameterOptions {
  Shape sample, label;         // shapes of one sample ([]: a list of numbers) and of its label
  std::string shard = "even";  // or a weight a replica: "7,2,1"
  BroadcastPolicy broadcast = BroadcastPolicy::never();  // of data_parallel_step
  GroupOptions group;
};

class ParameterReplicas;

// One of the replicas.
class ParameterReplica {
 public:
  // Forgets the gradients.
  void zero_grad() { gradients_.clear(); }
  // Runs the step function on the shard and its backward part; a shard without rows gives zeros
  // and does not call it. Enqueues and returns. Errors: kUsage for a shard or sums that do not fit;
  // what the function throws.
  void forward_backward(const Shard& shard, const StepFunction& step);
  // One update with the synchronised gradients.
  void step();

  // The parameters on this replica's queue, in the order of the list.
  const std::vector<Tensor>& parameters() const { return tensors_; }
  // Runs ops on its queue: Tape tape(replica.eager()).
  Eager& eager() { return eager_; }
  const std::shared_ptr<Queue>& queue() const { return eager_.queue(); }
  int64_t steps() const { return steps_; }

 private:
  friend class ParameterReplicas;
  friend void sync_grads(ParameterReplicas& replicas);
  friend void broadcast_params(ParameterReplicas& replicas, const BroadcastPolicy& policy,
                               uint32_t root);

  ParameterReplica(ParameterReplicas& all, size_t index, const std::shared_ptr<Queue>& queue);
  void flatten(const Tensor& from, const std::string& name);
  void clear(const std::string& name);
  void take_parameters(const cl::Buffer& from, int64_t offset);

  ParameterReplicas& all_;
  const size_t index_;
  Eager eager_;
  FlatUpdate update_;
  std::vector<Tensor> tensors_;
  GradientState gradients_;
  int64_t steps_ = 0;
};

class ParameterReplicas {
 public:
  // Errors: kUsage for no parameters, no queues or weights that do not fit; kPlugin, kDevice.
  ParameterReplicas(Runtime& runtime, const ParameterList& parameters,
                    const std::vector<std::shared_ptr<Queue>>& queues, const Optimizer& optimizer,
                    const ParameterOptions& options = {});
  ParameterReplicas(const ParameterReplicas&) = delete;
  ParameterReplicas& operator=(const ParameterReplicas&) = delete;

  size_t size() const { return members_.size(); }
  ParameterReplica& operator[](size_t i) { return *members_[i]; }
  const ShardPlan& plan() const { return plan_; }
  const ParameterOptions& options() const { return options_; }
  QueueGroup* group() { return group_.get(); }  // null for one replica
  int64_t steps() const { return members_[0]->steps(); }
  double lr() const { return lr_; }
  void set_lr(double lr) { lr_ = lr; }

  void zero_grad();
  void step();
  // Mean loss of the whole batch, once its gradients are synchronised; waits. No number if nothing
  // in it counts.
  double loss();

 private:
  friend class ParameterReplica;
  friend void sync_grads(ParameterReplicas& replicas);
  friend void broadcast_params(ParameterReplicas& replicas, const BroadcastPolicy& policy,
                               uint32_t root);

  Runtime& runtime_;
  const std::vector<Parameter> parameters_;
  const Optimizer optimizer_;
  const ParameterOptions options_;
  ArenaLayout layout_, gradients_;  // gradients_: the sums, then as layout_
  int64_t sums_floats_ = 0;
  double lr_;
  ShardPlan plan_;
  std::unique_ptr<QueueGroup> group_;
  std::unique_ptr<GradientBuckets> buckets_;
  std::vector<std::unique_ptr<ParameterReplica>> members_;
  std::vector<float> sums_;
  cl::Event sums_there_;
};

inline ParameterReplicas prepare_replicas(Runtime& runtime, const ParameterList& parameters,
                                          const std::vector<std::shared_ptr<Queue>>& queues,
                                          const Optimizer& optimizer,
                                          const ParameterOptions& options = {}) {
  return ParameterReplicas(runtime, parameters, queues, optimizer, options);
}

// As for Replicas (replicas.h).
void sync_grads(ParameterReplicas& replicas);
void broadcast_params(ParameterReplicas& replicas,
                      const BroadcastPolicy& policy = BroadcastPolicy::every_step(),
                      uint32_t root = 0);
// A whole training step with the step function; returns the mean loss of the whole batch. Waits.
double data_parallel_step(ParameterReplicas& replicas, const Batch& batch,
                          const StepFunction& step);

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_PARAMETER_REPLICAS_H_
