// Replicas: copies of a model on several queues of one process, trained together. The result is
// that of one device with the whole batch, whatever the shards.
//
//   Replicas replicas(model, queues, AdamW{.lr = 1e-3});
//   double loss = data_parallel_step(replicas, {x, y});
// or, step by step:
//   replicas.zero_grad();
//   replicas.forward_backward(shard_batch({x, y}, replicas.plan()));
//   sync_grads(replicas);
//   replicas.step();
//   broadcast_params(replicas, BroadcastPolicy::every_steps(100));
//
// Each replica adds up losses, denominators and gradients over its shard; sync_grads adds them up
// over the replicas, and the update divides once. Everything is enqueued and returns at once,
// except what the comment says waits. Ownership: borrows the model's Runtime, which outlives it.
// Threads: one at a time.
#ifndef NETCL_CORE_DISTRIBUTED_REPLICAS_H_
#define NETCL_CORE_DISTRIBUTED_REPLICAS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/distributed/batch.h"
#include "core/distributed/broadcast_policy.h"
#include "core/distributed/gradient_buckets.h"
#include "core/distributed/group_sum.h"
#include "core/distributed/model.h"
#include "core/distributed/queue_group.h"
#include "core/distributed/replica.h"
#include "core/distributed/sums.h"

namespace netcl {

struct PrepareOptions {
  LossSpec loss;
  std::vector<std::string> metrics;  // beside the loss; for classes "accuracy" is always there
  std::string shard = "even";        // or a weight a replica: "7,2,1"
  BroadcastPolicy broadcast = BroadcastPolicy::never();  // of data_parallel_step
  uint64_t seed = 0;                                     // of initial values and dropout
  int64_t shard_rows = 64;  // memory for so many at first; larger shards make it grow
  bool accumulate = false;  // gradients add up until zero_grad, instead of being replaced
  DType precision = DType::kF32;
  DType input_dtype = DType::kF32, label_dtype = DType::kI32;
  Shape label_shape;   // of one label; [] is a class or a number
  GroupOptions group;  // the transport between the replicas
};

class Replicas;

// One of the replicas. Its random numbers are those of its rows in the whole batch.
class ModelReplica {
 public:
  // Forgets the gradients.
  void zero_grad();
  // Sums and gradients of the shard. Errors: kUsage for a shard that does not fit the model, or
  // gradients that are there already and do not add up (see PrepareOptions::accumulate).
  void forward_backward(const Shard& shard);
  // One update with the synchronised gradients. Errors: kUsage if they are not.
  void step();

  const std::shared_ptr<Queue>& queue() const { return queue_; }
  Replica& replica() { return *replica_; }
  int64_t steps() const { return steps_; }

 private:
  friend class Replicas;
  friend void sync_grads(Replicas& replicas);

  ModelReplica(Replicas& all, size_t index, std::shared_ptr<Queue> queue);
  void make_room(int64_t rows);
  void forward_backward_of(const Shard& shard);

  Replicas& all_;
  const size_t index_;
  std::shared_ptr<Queue> queue_;
  std::unique_ptr<GroupSum> sums_;  // inside of a step, and of statistics; null if there are none
  std::unique_ptr<Replica> replica_;
  int64_t max_rows_ = 0, steps_ = 0;
  double samples_since_merge_ = 0;
  GradientState gradients_;
};

class Replicas {
 public:
  // Errors: kUsage for no queues, weights that do not fit, or a model whose layers do not; kPlugin,
  // kDevice.
  Replicas(const Model& model, const std::vector<std::shared_ptr<Queue>>& queues,
           const Optimizer& optimizer, const PrepareOptions& options = {});
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  size_t size() const { return members_.size(); }
  ModelReplica& operator[](size_t i) { return *members_[i]; }
  const ShardPlan& plan() const { return plan_; }
  const PrepareOptions& options() const { return options_; }
  const StepGraphs& graphs() const { return graphs_; }
  QueueGroup* group() { return group_.get(); }  // null for one replica
  int64_t steps() const { return members_[0]->steps(); }
  double lr() const { return lr_; }
  void set_lr(double lr) { lr_ = lr; }

  void zero_grad();
  // One shard a replica, all enqueued before any is waited for. A model that adds sums up in the
  // middle of a step (synchronised batch norm) has its replicas wait for each other, each on a
  // thread, until the step has ended.
  void forward_backward(const std::vector<Shard>& shards);
  void step();

  // Mean loss of the whole batch, once its gradients are synchronised; waits. No number if nothing
  // in it counts.
  double loss();
  // Sums over all rows of the batch, as in evaluation: loss(), accuracy(). Waits.
  Sums evaluate(const Batch& batch);
  // The model's output for x, row by row, as in evaluation; labels are not looked at. Waits.
  std::vector<float> predict(const Batch& batch);
  // A parameter by name ("layers.0.weight"), and all of them as one arena. They wait.
  std::vector<float> parameter(const std::string& name, size_t replica = 0);
  std::vector<float> parameters(size_t replica = 0);
  std::vector<float> gradients(size_t replica = 0);  // synchronised, not divided

 private:
  friend class ModelReplica;
  friend void sync_grads(Replicas& replicas);
  friend void broadcast_params(Replicas& replicas, const BroadcastPolicy& policy, uint32_t root);

  void check(const Batch& batch, bool labels) const;
  void check_classes(const Batch& batch) const;
  bool sums_inside() const { return group_ != nullptr && graphs_.largest_all_reduce() > 0; }
  void merge_statistics();

  Runtime& runtime_;
  const PrepareOptions options_;
  const Optimizer optimizer_;
  const StepGraphs graphs_;
  const int64_t input_elements_;
  double lr_;
  ShardPlan plan_;
  std::unique_ptr<QueueGroup> group_;
  std::unique_ptr<GradientBuckets> buckets_;
  std::vector<std::unique_ptr<ModelReplica>> members_;
  std::vector<float> sums_;  // of the last synchronised gradients
  std::optional<cl::Event> sums_there_;
};

// Replicas with equal initial values, in the order of the queues.
inline Replicas prepare_replicas(const Model& model,
                                 const std::vector<std::shared_ptr<Queue>>& queues,
                                 const Optimizer& optimizer, const PrepareOptions& options = {}) {
  return Replicas(model, queues, optimizer, options);
}

// Adds gradients, losses and denominators up over all replicas; waits for the sums.
// Errors: kUsage for a replica without gradients; kTraining, kDevice.
void sync_grads(Replicas& replicas);
// Gives every replica the root's parameters, if it is time; the gradients are gone then. Waits.
void broadcast_params(Replicas& replicas,
                      const BroadcastPolicy& policy = BroadcastPolicy::every_step(),
                      uint32_t root = 0);
// A whole training step; returns the mean loss of the whole batch. Waits for it.
// Errors: kUsage for a batch without rows, or one that does not fit the model.
double data_parallel_step(Replicas& replicas, const Batch& batch);

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_REPLICAS_H_
