#include "core/distributed/replicas.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/base/error.h"
#include "core/distributed/statistics_merge.h"

namespace netcl {

namespace {

StepSpec spec_of(const Optimizer& optimizer, const PrepareOptions& options) {
  StepSpec out;
  out.input_dtype = options.input_dtype;
  out.label_dtype = options.label_dtype;
  out.label_shape = options.label_shape;
  out.loss = options.loss;
  out.metrics = options.metrics;
  const bool known = std::count(out.metrics.begin(), out.metrics.end(), "accuracy") > 0;
  if (options.loss.takes_classes() && !known) out.metrics.emplace_back("accuracy");
  out.optimizer = optimizer;
  out.precision = options.precision;
  return out;
}

Optimizer checked(const Optimizer& optimizer) {
  optimizer.check();
  return optimizer;
}

}  // namespace

// ---- one replica ----

ModelReplica::ModelReplica(Replicas& all, size_t index, std::shared_ptr<Queue> queue)
    : all_(all), index_(index), queue_(std::move(queue)) {}

// A replica's memory has one size; a larger one takes its values over.
void ModelReplica::make_room(int64_t rows) {
  if (replica_ != nullptr && rows <= max_rows_) return;
  const bool holds = all_.options_.accumulate && !gradients_.none();
  NETCL_CHECK(!holds, ErrorCode::kUsage, "a shard of ", rows,
              " rows cannot be added to gradients in memory for ", max_rows_,
              "; prepare the replicas with shard_rows ", rows, " or more");
  max_rows_ = std::max(rows, 2 * max_rows_);
  CompiledGraph::AllReduce all_reduce;
  if (all_.sums_inside()) {
    all_reduce = [this](const cl::Buffer& in, const cl::Buffer& out, const TensorDesc& desc) {
      sums_->add_up(in, out, desc, "a sum inside of the step");
    };
  }
  auto larger = std::make_unique<Replica>(
      all_.graphs_, all_.optimizer_, all_.runtime_.kernels(), queue_, all_.buckets_->send(index_),
      all_.buckets_->recv(index_), max_rows_, all_reduce, all_.options_.accumulate);
  if (replica_ == nullptr) {
    larger->initialise(all_.options_.seed);
  } else {
    larger->write_parameters(replica_->read_parameters());
    larger->write_statistics(replica_->read_statistics());
    larger->write_loss_scale(replica_->read_loss_scale());
    for (size_t i = 0; i < all_.graphs_.plan.states.size(); ++i) {
      larger->write_state(i, replica_->read_state(i));
    }
  }
  replica_ = std::move(larger);
}

void ModelReplica::zero_grad() { gradients_.clear(); }

void ModelReplica::forward_backward(const Shard& shard) {
  NETCL_CHECK(
      !all_.sums_inside(), ErrorCode::kUsage,
      "this model adds sums up over the replicas in the middle of a step, so no replica can "
      "go ahead alone; call Replicas::forward_backward with a shard for each");
  forward_backward_of(shard);
}

void ModelReplica::forward_backward_of(const Shard& shard) {
  all_.check(shard.batch, true);
  gradients_.expect_room(index_, all_.options_.accumulate);
  const bool first = gradients_.none();
  const int64_t rows = shard.batch.rows();
  make_room(rows);
  replica_->stage(shard.batch.x(), shard.batch.y(), rows);
  replica_->forward_backward(rows, {all_.options_.seed, steps_ + 1, shard.first_row});
  if (all_.options_.accumulate) replica_->accumulate(first);
  replica_->marker();  // so that the device begins
  samples_since_merge_ += static_cast<double>(rows);
  gradients_.computed();
}

void ModelReplica::step() {
  gradients_.expect_reduced(index_);
  replica_->update(++steps_, all_.lr_);
}

// ---- all of them ----

Replicas::Replicas(const Model& model, const std::vector<std::shared_ptr<Queue>>& queues,
                   const Optimizer& optimizer, const PrepareOptions& options)
    : runtime_(model.runtime()),
      options_(options),
      optimizer_(checked(optimizer)),
      graphs_(model.trace(spec_of(optimizer, options))),
      input_elements_(model.input().num_elements()),
      lr_(optimizer.lr),
      plan_(fixed_plan(options.shard, queues.size())) {
  if (queues.size() > 1) {
    group_ = std::make_unique<QueueGroup>(runtime_, queues, options.group);
  }
  buckets_ =
      std::make_unique<GradientBuckets>(group_.get(), queues, graphs_.gradients.num_floats());
  for (size_t i = 0; i < queues.size(); ++i) {
    members_.push_back(std::unique_ptr<ModelReplica>(new ModelReplica(*this, i, queues[i])));
  }
  const size_t sum_bytes =
      std::max(graphs_.largest_all_reduce(),
               static_cast<size_t>(graphs_.statistic_values.num_floats()) * sizeof(float));
  if (group_ != nullptr && sum_bytes > 0) {
    group_->on_ranks([&](uint32_t r) {
      members_[r]->sums_ =
          std::make_unique<GroupSum>(group_->communicator(r), *members_[r]->queue_, sum_bytes);
    });
  }
  for (const auto& member : members_) member->make_room(std::max<int64_t>(options.shard_rows, 1));
  sums_.resize(members_[0]->replica().sums_size());
}

void Replicas::check(const Batch& batch, bool labels) const {
  if (batch.rows() == 0) return;
  NETCL_CHECK(batch.x_dtype() == options_.input_dtype && batch.x_elements() == input_elements_,
              ErrorCode::kUsage, "a batch whose samples are ",
              TensorDesc{batch.x_dtype(), {batch.x_elements()}}.str(),
              " does not fit the model, whose input has ",
              TensorDesc{options_.input_dtype, {input_elements_}}.str());
  if (!labels) return;
  const int64_t wanted = options_.label_shape.num_elements();
  NETCL_CHECK(batch.y_dtype() == options_.label_dtype && batch.y_elements() == wanted,
              ErrorCode::kUsage, "a batch whose labels are ",
              TensorDesc{batch.y_dtype(), {batch.y_elements()}}.str(),
              " a sample does not fit the replicas, which were prepared for ",
              TensorDesc{options_.label_dtype, {wanted}}.str(),
              "; see label_dtype and label_shape of PrepareOptions");
  check_classes(batch);
}

// A class that the model does not have would be read from beyond its outputs.
void Replicas::check_classes(const Batch& batch) const {
  if (batch.y_dtype() != DType::kI32 || graphs_.num_outputs == 0) return;
  const auto* y = static_cast<const int32_t*>(batch.y());
  for (int64_t i = 0; i < batch.rows() * batch.y_elements(); ++i) {
    NETCL_CHECK((y[i] >= 0 && y[i] < graphs_.num_outputs) || y[i] == options_.loss.ignore_index,
                ErrorCode::kUsage, "label ", y[i], " of row ", i / batch.y_elements(),
                " of a shard: the model tells ", graphs_.num_outputs, " classes apart, 0 to ",
                graphs_.num_outputs - 1);
  }
}

void Replicas::zero_grad() {
  for (const auto& member : members_) member->zero_grad();
}

void Replicas::forward_backward(const std::vector<Shard>& shards) {
  NETCL_CHECK(shards.size() == size(), ErrorCode::kUsage, shards.size(), " shards for ", size(),
              " replicas; shard_batch with replicas.plan() makes one for each");
  for (const Shard& shard : shards) check(shard.batch, true);
  if (!sums_inside()) {
    for (size_t r = 0; r < size(); ++r) members_[r]->forward_backward(shards[r]);
  } else {
    group_->on_ranks([&](uint32_t r) { members_[r]->forward_backward_of(shards[r]); });
  }
}

void Replicas::step() {
  for (const auto& member : members_) member->step();
}

void sync_grads(Replicas& replicas) {
  for (size_t r = 0; r < replicas.size(); ++r) replicas[r].gradients_.expect_computed(r);
  replicas.buckets_->all_reduce("gradients");
  for (const auto& member : replicas.members_) member->gradients_.reduced();
  if (replicas.sums_there_) replicas.sums_there_->wait();
  replicas.sums_there_ = replicas[0].replica().read_sums(replicas.sums_.data(), true);
}

void broadcast_params(Replicas& replicas, const BroadcastPolicy& policy, uint32_t root) {
  NETCL_CHECK(root < replicas.size(), ErrorCode::kUsage, "broadcast_params: root ", root, " of ",
              replicas.size(), " replicas");
  if (replicas.size() == 1 || !policy.due(replicas.steps())) return;
  // In the gradients' memory, where both have their gaps at the same places.
  GradientBuckets& buckets = *replicas.buckets_;
  const int64_t offset = replicas.graphs_.sums_floats;
  replicas[root].replica().copy_parameters_to(buckets.send(root), offset);
  buckets.broadcast(offset, replicas.graphs_.parameters.num_floats(), root, "parameters");
  for (uint32_t r = 0; r < replicas.size(); ++r) {
    if (r != root) replicas[r].replica().copy_parameters_from(buckets.recv(r), offset);
    replicas[r].zero_grad();
  }
}

double data_parallel_step(Replicas& replicas, const Batch& batch) {
  NETCL_CHECK(batch.rows() > 0, ErrorCode::kUsage, "data_parallel_step: a batch without rows");
  replicas.zero_grad();
  replicas.forward_backward(shard_batch(batch, replicas.plan()));
  sync_grads(replicas);
  replicas.step();
  broadcast_params(replicas, replicas.options().broadcast);
  return replicas.loss();
}

double Replicas::loss() {
  NETCL_CHECK(sums_there_.has_value(), ErrorCode::kUsage,
              "there is no loss before the first sync_grads");
  with_cl_errors("waiting for the loss", [&] { sums_there_->wait(); });
  const auto at = [&](const char* name) {
    return static_cast<double>(sums_[static_cast<size_t>(graphs_.gradients.find(name).offset)]);
  };
  const double denominator = at(step_names::kDenominator);
  return denominator == 0 ? std::numeric_limits<double>::quiet_NaN()
                          : at(step_names::kLoss) / denominator;
}

void Replicas::merge_statistics() {
  if (group_ == nullptr || graphs_.statistics.empty()) return;
  group_->on_ranks([this](uint32_t r) {
    ModelReplica& member = *members_[r];
    const Group links{
        &group_->bootstrap(r), &group_->communicator(r), nullptr, member.sums_.get(), r,
        group_->size()};
    netcl::merge_statistics(member.replica(), links, member.samples_since_merge_);
    member.samples_since_merge_ = 0;
  });
}

Sums Replicas::evaluate(const Batch& batch) {
  check(batch, true);
  merge_statistics();
  const std::vector<Shard> shards = shard_batch(batch, plan_);
  std::vector<std::vector<float>> parts(size());
  std::vector<cl::Event> there(size());
  for (size_t r = 0; r < size(); ++r) {
    ModelReplica& member = *members_[r];
    const Batch& part = shards[r].batch;
    parts[r].resize(static_cast<size_t>(graphs_.eval_sums.num_floats()));
    if (part.rows() == 0) continue;
    member.make_room(part.rows());
    member.replica().stage(part.x(), part.y(), part.rows());
    member.replica().evaluate(part.rows());
    there[r] = member.replica().read_eval_sums(parts[r].data());
  }
  Sums out;
  for (size_t r = 0; r < size(); ++r) {
    if (shards[r].batch.rows() > 0)
      with_cl_errors("waiting for an evaluation", [&] { there[r].wait(); });
    out.add(graphs_.eval_sums, parts[r].data());
  }
  return out;
}

std::vector<float> Replicas::predict(const Batch& batch) {
  check(batch, false);
  merge_statistics();
  const std::vector<Shard> shards = shard_batch(batch, plan_);
  for (size_t r = 0; r < size(); ++r) {
    const int64_t rows = shards[r].batch.rows();
    if (rows == 0) continue;
    members_[r]->make_room(rows);
    members_[r]->replica().stage(shards[r].batch.x(), nullptr, rows);
    members_[r]->replica().forward(rows);
    members_[r]->replica().marker();
  }
  std::vector<float> out;
  for (size_t r = 0; r < size(); ++r) {
    if (shards[r].batch.rows() == 0) continue;
    const std::vector<float> part = members_[r]->replica().read_output(shards[r].batch.rows());
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

std::vector<float> Replicas::parameters(size_t replica) {
  return members_.at(replica)->replica().read_parameters();
}

std::vector<float> Replicas::gradients(size_t replica) {
  return members_.at(replica)->replica().read_gradients();
}

std::vector<float> Replicas::parameter(const std::string& name, size_t replica) {
  const ArenaLayout::Entry& entry = graphs_.parameters.find(name);
  const std::vector<float> arena = parameters(replica);
  const auto begin = arena.begin() + entry.offset;
  return {begin, begin + entry.desc.shape.num_elements()};
}

}  // namespace netcl
