#include "core/distributed/parameter_replicas.h"

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/nn/init.h"

namespace netcl {

namespace {

constexpr const char* kLoss = "loss";
constexpr const char* kDenominator = "denominator";

std::string gradient_of(const std::string& parameter) { return "grad/" + parameter; }

// `rows` samples of a shape; without one, lists of `elements` numbers, or single numbers.
TensorDesc rows_of(DType dtype, int64_t rows, const Shape& shape, int64_t elements, bool single,
                   const char* what) {
  std::vector<int64_t> dims = {rows};
  if (shape.rank() > 0) {
    dims.insert(dims.end(), shape.dims().begin(), shape.dims().end());
  } else if (!single || elements != 1) {
    dims.push_back(elements);
  }
  TensorDesc out{dtype, Shape(dims)};
  NETCL_CHECK(out.shape.num_elements() == rows * elements, ErrorCode::kUsage, "a batch with ",
              elements, " elements a ", what,
              " does not fit the replicas, which were prepared for ", what, "s ", shape.str());
  return out;
}

// Enqueues a copy to the device; `bytes` stays valid until the gradients are waited for.
Tensor upload(const std::shared_ptr<Queue>& queue, const TensorDesc& desc, const void* bytes) {
  Tensor out(queue, desc, "a batch");
  if (desc.size_bytes() == 0) return out;
  const cl::Event done = with_cl_errors("writing a batch", [&] {
    cl::Event event;
    queue->cl().enqueueWriteBuffer(out.buffer(), CL_FALSE, 0, desc.size_bytes(), bytes, nullptr,
                                   &event);
    return event;
  });
  out.set_ready(done);
  queue->enqueued(1, done);
  return out;
}

}  // namespace

// ---- the list ----

ParameterList& ParameterList::values(const std::string& name, const Shape& shape,
                                     std::vector<float> values) {
  for (const Parameter& known : parameters_) {
    NETCL_CHECK(known.name != name, ErrorCode::kUsage, "there are two parameters \"", name, "\"");
  }
  NETCL_CHECK(!shape.symbolic() && static_cast<int64_t>(values.size()) == shape.num_elements(),
              ErrorCode::kUsage, values.size(), " values for the parameter \"", name, "\" ",
              shape.str());
  parameters_.push_back({name, shape, std::move(values)});
  return *this;
}

ParameterList& ParameterList::drawn(const std::string& name, const Shape& shape, uint32_t init,
                                    double a, double b) {
  const Slot slot{name, {DType::kF32, shape}, init, a, b};
  return values(name, shape,
                initial_values(slot, seed_, static_cast<uint32_t>(parameters_.size())));
}

ParameterList& ParameterList::uniform(const std::string& name, const Shape& shape, double limit) {
  return drawn(name, shape, NETCL_INIT_UNIFORM, -limit, limit);
}
ParameterList& ParameterList::normal(const std::string& name, const Shape& shape,
                                     double deviation) {
  return drawn(name, shape, NETCL_INIT_NORMAL, 0, deviation);
}
ParameterList& ParameterList::constant(const std::string& name, const Shape& shape, double value) {
  return drawn(name, shape, NETCL_INIT_CONSTANT, value, 0);
}

// ---- one replica ----

ParameterReplica::ParameterReplica(ParameterReplicas& all, size_t index,
                                   const std::shared_ptr<Queue>& queue)
    : all_(all),
      index_(index),
      eager_(all.runtime_.kernels(), queue),
      update_(all.layout_, all.optimizer_, all.runtime_.kernels(), queue, all.buckets_->recv(index),
              {all.gradients_.num_floats(), all.sums_floats_,
               all.gradients_.find(kDenominator).offset}) {
  std::vector<float> arena(static_cast<size_t>(all.layout_.num_floats()), 0.0f);
  for (const Parameter& parameter : all.parameters_) {
    const TensorDesc desc{DType::kF32, parameter.shape};
    tensors_.push_back(Tensor::from_host(queue, desc, parameter.values.data()));
    std::copy(parameter.values.begin(), parameter.values.end(),
              arena.begin() + all.layout_.find(parameter.name).offset);
  }
  update_.start(arena);
  // The gaps of the arena are never written, but reduced like the rest.
  with_cl_errors("clearing the gradients", [&] {
    queue->cl().enqueueFillBuffer(all.buckets_->send(index), 0.0f, 0,
                                  static_cast<size_t>(all.gradients_.num_floats()) * sizeof(float));
  });
}

// Copies a tensor to its place in the gradients' buffer.
void ParameterReplica::flatten(const Tensor& from, const std::string& name) {
  const ArenaLayout::Entry& entry = all_.gradients_.find(name);
  if (entry.desc.size_bytes() == 0) return;
  with_cl_errors("collecting the gradients", [&] {
    queue()->cl().enqueueCopyBuffer(from.buffer(), all_.buckets_->send(index_), 0,
                                    static_cast<size_t>(entry.offset) * sizeof(float),
                                    entry.desc.size_bytes());
  });
  queue()->enqueued(1);
}

void ParameterReplica::clear(const std::string& name) {
  const ArenaLayout::Entry& entry = all_.gradients_.find(name);
  if (entry.desc.size_bytes() == 0) return;
  with_cl_errors("clearing a gradient", [&] {
    queue()->cl().enqueueFillBuffer(all_.buckets_->send(index_), 0.0f,
                                    static_cast<size_t>(entry.offset) * sizeof(float),
                                    entry.desc.size_bytes());
  });
  queue()->enqueued(1);
}

void ParameterReplica::forward_backward(const Shard& shard, const StepFunction& step) {
  gradients_.expect_room(index_, false);
  const Batch& batch = shard.batch;
  const auto& parameters = all_.parameters_;
  if (batch.rows() == 0) {
    for (const char* sum : {kLoss, kDenominator}) clear(sum);
    for (const Parameter& parameter : parameters) clear(gradient_of(parameter.name));
    return gradients_.computed();
  }
  const ParameterOptions& options = all_.options_;
  const TensorDesc x =
      rows_of(batch.x_dtype(), batch.rows(), options.sample, batch.x_elements(), false, "sample");
  const TensorDesc y =
      rows_of(batch.y_dtype(), batch.rows(), options.label, batch.y_elements(), true, "label");
  Tape tape(eager_);
  std::vector<ValueId> values;
  for (const Tensor& tensor : tensors_) values.push_back(tape.watch(tensor));
  const ValueId samples = tape.watch(upload(queue(), x, batch.x()));
  const ValueId labels = tape.watch(upload(queue(), y, batch.y()));
  const LossSums sums = step(tape, values, samples, labels);
  for (const auto& [what, value] :
       {std::pair{kLoss, sums.loss}, std::pair{kDenominator, sums.denominator}}) {
    NETCL_CHECK(value < tape.num_values() && tape.desc(value).dtype == DType::kF32 &&
                    tape.desc(value).shape.num_elements() == 1,
                ErrorCode::kUsage,
                "the step function must return the sum of the losses and their "
                "denominator, f32 of one element each; its ",
                what, " is ",
                value < tape.num_values() ? tape.desc(value).str() : "no value of the tape");
    flatten(tape.tensor(value), what);
  }
  const auto gradients = tape.backward(sums.loss, values);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string name = gradient_of(parameters[i].name);
    if (gradients[i]) {
      flatten(*gradients[i], name);
    } else {  // the loss does not depend on it
      clear(name);
    }
  }
  with_cl_errors("flushing a queue", [&] { queue()->cl().flush(); });
  gradients_.computed();
}

// The tensors become what the arena holds.
void ParameterReplica::take_parameters(const cl::Buffer& from, int64_t offset) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const ArenaLayout::Entry& entry = all_.layout_.find(all_.parameters_[i].name);
    if (entry.desc.size_bytes() == 0) continue;
    const cl::Event done = with_cl_errors("copying the parameters", [&] {
      cl::Event event;
      queue()->cl().enqueueCopyBuffer(from, tensors_[i].buffer(),
                                      static_cast<size_t>(entry.offset + offset) * sizeof(float), 0,
                                      entry.desc.size_bytes(), nullptr, &event);
      return event;
    });
    tensors_[i].set_ready(done);
    queue()->enqueued(1, done);
  }
  with_cl_errors("flushing a queue", [&] { queue()->cl().flush(); });
}

void ParameterReplica::step() {
  gradients_.expect_reduced(index_);
  update_.step(++steps_, all_.lr_);
  take_parameters(update_.parameters(), 0);
}

// ---- all of them ----

ParameterReplicas::ParameterReplicas(Runtime& runtime, const ParameterList& parameters,
                                     const std::vector<std::shared_ptr<Queue>>& queues,
                                     const Optimizer& optimizer, const ParameterOptions& options)
    : runtime_(runtime),
      parameters_(parameters.all()),
      optimizer_(optimizer),
      options_(options),
      lr_(optimizer.lr),
      plan_(fixed_plan(options.shard, queues.size())) {
  optimizer_.check();
  NETCL_CHECK(!parameters_.empty(), ErrorCode::kUsage,
              "the list of parameters is empty, so there is nothing to train");
  for (const char* sum : {kLoss, kDenominator}) gradients_.add(sum, {DType::kF32, Shape{1}});
  sums_floats_ = gradients_.num_floats();
  for (const Parameter& parameter : parameters_) {
    const TensorDesc desc{DType::kF32, parameter.shape};
    layout_.add(parameter.name, desc);
    gradients_.add(gradient_of(parameter.name), desc);
  }
  if (queues.size() > 1) group_ = std::make_unique<QueueGroup>(runtime, queues, options.group);
  buckets_ = std::make_unique<GradientBuckets>(group_.get(), queues, gradients_.num_floats());
  for (size_t i = 0; i < queues.size(); ++i) {
    members_.push_back(
        std::unique_ptr<ParameterReplica>(new ParameterReplica(*this, i, queues[i])));
  }
  sums_.resize(static_cast<size_t>(sums_floats_));
}

void ParameterReplicas::zero_grad() {
  for (const auto& member : members_) member->zero_grad();
}

void ParameterReplicas::step() {
  for (const auto& member : members_) member->step();
}

void sync_grads(ParameterReplicas& replicas) {
  for (size_t r = 0; r < replicas.size(); ++r) replicas[r].gradients_.expect_computed(r);
  replicas.buckets_->all_reduce("gradients");
  for (const auto& member : replicas.members_) member->gradients_.reduced();
  with_cl_errors("reading the sums", [&] {
    if (replicas.sums_there_() != nullptr) replicas.sums_there_.wait();
    const cl::CommandQueue& queue = replicas[0].queue()->cl();
    queue.enqueueReadBuffer(replicas.buckets_->recv(0), CL_FALSE, 0,
                            replicas.sums_.size() * sizeof(float), replicas.sums_.data(), nullptr,
                            &replicas.sums_there_);
    queue.flush();
  });
}

void broadcast_params(ParameterReplicas& replicas, const BroadcastPolicy& policy, uint32_t root) {
  NETCL_CHECK(root < replicas.size(), ErrorCode::kUsage, "broadcast_params: root ", root, " of ",
              replicas.size(), " replicas");
  if (replicas.size() == 1 || !policy.due(replicas.steps())) return;
  // In the gradients' memory, where both have their gaps at the same places.
  GradientBuckets& buckets = *replicas.buckets_;
  const int64_t offset = replicas.sums_floats_, count = replicas.layout_.num_floats();
  const auto copy = [&](size_t r, const cl::Buffer& from, const cl::Buffer& to, int64_t from_offset,
                        int64_t to_offset) {
    with_cl_errors("copying the parameters", [&] {
      replicas[r].queue()->cl().enqueueCopyBuffer(from, to,
                                                  static_cast<size_t>(from_offset) * sizeof(float),
                                                  static_cast<size_t>(to_offset) * sizeof(float),
                                                  static_cast<size_t>(count) * sizeof(float));
    });
  };
  copy(root, replicas[root].update_.parameters(), buckets.send(root), 0, offset);
  buckets.broadcast(offset, count, root, "parameters");
  for (uint32_t r = 0; r < replicas.size(); ++r) {
    ParameterReplica& member = replicas[r];
    if (r != root) copy(r, buckets.recv(r), member.update_.parameters(), offset, 0);
    if (r != root) member.take_parameters(member.update_.parameters(), 0);
    member.zero_grad();
  }
}

double ParameterReplicas::loss() {
  NETCL_CHECK(sums_there_() != nullptr, ErrorCode::kUsage,
              "there is no loss before the first sync_grads");
  with_cl_errors("waiting for the loss", [&] { sums_there_.wait(); });
  const auto at = [&](const char* name) {
    return static_cast<double>(sums_[static_cast<size_t>(gradients_.find(name).offset)]);
  };
  const double denominator = at(kDenominator);
  return denominator == 0 ? std::numeric_limits<double>::quiet_NaN() : at(kLoss) / denominator;
}

double data_parallel_step(ParameterReplicas& replicas, const Batch& batch,
                          const StepFunction& step) {
  NETCL_CHECK(batch.rows() > 0, ErrorCode::kUsage, "data_parallel_step: a batch without rows");
  replicas.zero_grad();
  const std::vector<Shard> shards = shard_batch(batch, replicas.plan());
  for (size_t r = 0; r < replicas.size(); ++r) replicas[r].forward_backward(shards[r], step);
  sync_grads(replicas);
  replicas.step();
  broadcast_params(replicas, replicas.options().broadcast);
  return replicas.loss();
}

}  // namespace netcl
