#include "core/distributed/replica.h"

#include <algorithm>

#include "core/graph/size_limits.h"
#include "core/nn/init.h"
#include "core/nn/loss_scale.h"

namespace netcl {

namespace {

size_t arena_bytes(const ArenaLayout& layout) {
  return static_cast<size_t>(layout.num_floats()) * sizeof(float);
}

cl::Buffer slice(const cl::Buffer& base, int64_t offset_floats, size_t size_bytes) {
  cl_buffer_region region{static_cast<size_t>(offset_floats) * sizeof(float),
                          std::max<size_t>(size_bytes, 4)};
  cl::Buffer parent = base;
  return parent.createSubBuffer(CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region);
}

}  // namespace

std::array<int32_t, 8> StepRandom::words() const {
  return {static_cast<int32_t>(static_cast<uint32_t>(seed)),
          static_cast<int32_t>(static_cast<uint32_t>(seed >> 32)),
          static_cast<int32_t>(step),
          static_cast<int32_t>(first_row),
          0,
          0,
          0,
          0};
}

void require_room(const StepGraphs& graphs, int64_t max_rows, const DeviceInfo& device) {
  const std::pair<const char*, const ArenaLayout*> arenas[] = {
      {"the parameters", &graphs.parameters},
      {"the gradients", &graphs.gradients},
      {"the statistics", &graphs.statistic_values}};
  for (const auto& [what, layout] : arenas) {
    require_size(device, {DType::kF32, Shape{layout->num_floats()}}, largest_of(what, *layout),
                 kSmallerModel);
  }
  for (const Graph::Place& place : graphs.train.externals()) {
    if (place.name != step_names::kX && place.name != step_names::kLabels) continue;
    const TensorDesc& desc = graphs.train.desc(place.value);
    const TensorDesc batch{desc.dtype, desc.shape.with_batch(max_rows)};
    require_size(device, batch, str_cat("the batch's ", place.name, ", ", batch.str(), ","),
                 kSmallerBatch);
  }
}

Replica::Replica(const StepGraphs& graphs, const Optimizer& optimizer, KernelProvider& kernels,
                 std::shared_ptr<Queue> queue, cl::Buffer send, cl::Buffer recv, int64_t max_rows,
                 CompiledGraph::AllReduce all_reduce, bool accumulates,
                 std::optional<FloatRange> share)
    : graphs_(graphs),
      optimizer_(optimizer),
      share_(share),
      plan_(share ? share_of(optimizer, graphs.plan, *share) : graphs.plan),
      kernels_(kernels),
      queue_(std::move(queue)),
      send_(std::move(send)),
      recv_(std::move(recv)),
      max_rows_(std::max<int64_t>(max_rows, 1)),
      train_(
          graphs.train, kernels, queue_,
          [this](const auto& n, const auto& d) { return memory(n, d, false); }, all_reduce),
      eval_(graphs.eval, kernels, queue_,
            [this](const auto& n, const auto& d) { return eval_memory(n, d); }),
      update_(
          share ? update_graph(optimizer, plan_, graphs.gradients.num_floats(),
                               graphs.sums_floats + share->first, graphs.loss_scaled, true)
                : graphs.update,
          kernels, queue_, [this](const auto& n, const auto& d) { return memory(n, d, false); },
          std::move(all_reduce)),
      accumulate_(graphs.accumulate, kernels, queue_,
                  [this](const auto& n, const auto& d) { return memory(n, d, false); }),
      forward_(graphs.forward, kernels, queue_,
               [this](const auto& n, const auto& d) { return forward_memory(n, d); }) {
  require_room(graphs, max_rows_, queue_->device().info());
  const auto rows = static_cast<size_t>(max_rows_);
  const auto bytes_of_sample = [](const Graph& graph, ValueId value) {
    const TensorDesc& desc = graph.desc(value);
    return TensorDesc{desc.dtype, desc.shape.with_batch(1)}.size_bytes();
  };
  for (const Graph::Place& place : graphs.train.externals()) {
    if (place.name == step_names::kX) row_bytes_ = bytes_of_sample(graphs.train, place.value);
    if (place.name == step_names::kLabels)
      label_bytes_ = bytes_of_sample(graphs.train, place.value);
  }
  for (const Graph::Place& place : graphs.forward.outputs()) {
    if (place.name == step_names::kOutput)
      output_floats_ = bytes_of_sample(graphs.forward, place.value) / sizeof(float);
  }
  x_ = queue_->allocate(rows * row_bytes_, "the input batch");
  labels_ = queue_->allocate(rows * label_bytes_, "the labels");
  eval_sums_ = queue_->allocate(arena_bytes(graphs.eval_sums), "the evaluation's sums");
  write_constants();
  make_arenas();
  if (accumulates) {
    part_storage_ = queue_->allocate(arena_bytes(graphs.gradients), "the gradients of a pass");
  }
  part_ = accumulates ? part_storage_->buffer() : send_;
  clear_gradients();
}

void Replica::make_arenas() {
  random_ = queue_->allocate(8 * sizeof(int32_t), "the random state");
  hyper_.emplace(queue_, graphs_.plan.groups.size());
  blocks_ = table(plan_.blocks, "the table of blocks");
  slots_ = table(plan_.slots, "the table of slots");
  loss_scale_ = queue_->allocate(2 * sizeof(float), "the loss scale");
  write_loss_scale(loss_scale::first_state());
  if (optimizer_.measures_norm() || graphs_.loss_scaled)
    norm_ = queue_->allocate(sizeof(float), "the gradient's norm");
  parameters_ = queue_->allocate(arena_bytes(graphs_.parameters), "the parameters");
  const size_t share_bytes = static_cast<size_t>(state_range().count) * sizeof(float);
  updated_ = share_ ? queue_->allocate(share_bytes, "a share of the parameters") : parameters_;
  const size_t statistics_bytes = arena_bytes(graphs_.statistic_values);
  if (statistics_bytes > 0) {
    statistics_ = queue_->allocate(statistics_bytes, "the statistics");
    next_statistics_ = queue_->allocate(statistics_bytes, "the next statistics");
    // Its gaps are never written by kernels, but copied, kept and compared like the rest.
    with_cl_errors("clearing the next statistics", [&] {
      queue_->cl().enqueueFillBuffer(next_statistics_->buffer(), 0.0f, 0, statistics_bytes);
    });
  }
  for (const std::string& name : graphs_.plan.states) {
    states_.emplace_back(name, queue_->allocate(share_bytes, "the optimiser's " + name));
    if (name != step_names::kAverage || !optimizer_.ema_evaluate) continue;
    average_ = share_ ? queue_->allocate(arena_bytes(graphs_.parameters), "the average")
                      : states_.back().second;
  }
}

// The gaps of the arena are never written by kernels, but reduced like the rest.
void Replica::clear_gradients() {
  with_cl_errors("clearing the gradients", [&] {
    queue_->cl().enqueueFillBuffer(send_, 0.0f, 0, arena_bytes(graphs_.gradients));
    if (part_storage_ != nullptr)
      queue_->cl().enqueueFillBuffer(part_, 0.0f, 0, arena_bytes(graphs_.gradients));
  });
}

std::shared_ptr<Storage> Replica::table(const std::vector<int32_t>& values, const char* what) {
  auto out = queue_->allocate(values.size() * sizeof(int32_t), what);
  if (values.empty()) return out;
  with_cl_errors(std::string("writing ") + what, [&] {
    queue_->cl().enqueueWriteBuffer(out->buffer(), CL_TRUE, 0, values.size() * sizeof(int32_t),
                                    values.data());
  });
  return out;
}

void Replica::write_constants() {
  for (const Constants::Entry& entry : graphs_.constants.entries()) {
    constants_.emplace_back(entry.name, queue_->allocate(entry.bytes.size(), entry.name));
    with_cl_errors("writing " + entry.name, [&] {
      queue_->cl().enqueueWriteBuffer(constants_.back().second->buffer(), CL_TRUE, 0,
                                      entry.bytes.size(), entry.bytes.data());
    });
  }
}

void Replica::warm_up(int64_t rows) {
  // Zero is a class, a token, and a number.
  with_cl_errors("clearing the batch", [&] {
    for (const auto& storage : {x_, labels_})
      queue_->cl().enqueueFillBuffer(storage->buffer(), cl_int{0}, 0, storage->size_bytes());
  });
  const std::vector<float> parameters = read_parameters();
  std::vector<std::vector<float>> states;
  for (size_t i = 0; i < states_.size(); ++i) states.push_back(read_state_range(i));
  const std::vector<float> statistics = read_statistics();
  const std::array<float, 2> scale = read_loss_scale();
  write_random({});
  train_.run(rows, /*grouped=*/false);
  if (part_storage_ != nullptr) {
    accumulate(true);
    accumulate(false);
  }
  evaluate(rows);
  run_update(1, 0, /*grouped=*/false);
  clear_gradients();
  write_parameters(parameters);
  write_statistics(statistics);
  write_loss_scale(scale);
  for (size_t i = 0; i < states_.size(); ++i) write_state_range(i, states[i]);
  queue_->finish();
}

const Storage* Replica::whole_arena(const std::string& name) const {
  const std::pair<const char*, const Storage*> whole[] = {
      {step_names::kX, x_.get()},
      {step_names::kLabels, labels_.get()},
      {step_names::kRandom, random_.get()},
      {step_names::kHyper, &hyper_->storage()},
      {step_names::kBlocks, blocks_.get()},
      {step_names::kSlots, slots_.get()},
      {step_names::kGradNorm, norm_.get()},
      {step_names::kParameters, updated_.get()},
      {step_names::kLossScale, loss_scale_.get()}};
  for (const auto& [known, storage] : whole) {
    if (name == known) return storage;
  }
  for (const auto& [known, storage] : states_) {
    if (name == known) return storage.get();
  }
  for (const auto& [known, storage] : constants_) {
    if (name == known) return storage.get();
  }
  return nullptr;
}

cl::Buffer Replica::memory(const std::string& name, const TensorDesc& desc, bool evaluating) {
  if (const Storage* whole = whole_arena(name)) return whole->buffer();
  return with_cl_errors("placing " + name, [&] {
    // Whole: sub-buffers that overlap without being equal crash NVIDIA's driver (580).
    if (name == step_names::kGradients) return recv_;
    if (name == step_names::kTotal) return send_;
    if (name == step_names::kPart) return part_;
    if (name == step_names::kDivisor) {
      return slice(recv_, graphs_.gradients.find(step_names::kDenominator).offset,
                   desc.size_bytes());
    }
    const auto& sums = graphs_.sums;
    if (std::find(sums.begin(), sums.end(), name) != sums.end() || name.rfind("grad/", 0) == 0) {
      return slice(part_, graphs_.gradients.find(name).offset, desc.size_bytes());
    }
    const auto& statistics = graphs_.statistics;
    const bool next = name.rfind("next/", 0) == 0;
    const std::string plain = next ? name.substr(5) : name;
    if (next || std::any_of(statistics.begin(), statistics.end(),
                            [&](const Slot& slot) { return slot.name == plain; })) {
      return slice((next ? next_statistics_ : statistics_)->buffer(),
                   graphs_.statistic_values.find(plain).offset, desc.size_bytes());
    }
    const Storage& values = evaluating && average_ != nullptr ? *average_ : *parameters_;
    return slice(values.buffer(), graphs_.parameters.find(name).offset, desc.size_bytes());
  });
}

// The evaluation's sums lie in their own arena; all else it shares with training.
cl::Buffer Replica::eval_memory(const std::string& name, const TensorDesc& desc) {
  for (const ArenaLayout::Entry& entry : graphs_.eval_sums.entries()) {
    if (entry.name != name) continue;
    return with_cl_errors("placing " + name, [&] {
      return slice(eval_sums_->buffer(), entry.offset, desc.size_bytes());
    });
  }
  return memory(name, desc, true);
}

cl::Buffer Replica::forward_memory(const std::string& name, const TensorDesc& desc) {
  if (name != step_names::kOutput) return memory(name, desc, true);
  if (output_ == nullptr) {
    output_ = queue_->allocate(static_cast<size_t>(max_rows_) * output_floats_ * sizeof(float),
                               "the model's output");
  }
  return output_->buffer();
}

void Replica::write(const cl::Buffer& buffer, const void* bytes, size_t size, const char* what) {
  with_cl_errors(std::string("writing ") + what, [&] {
    cl::Event event;
    Trace* trace = queue_->recording();
    queue_->cl().enqueueWriteBuffer(buffer, CL_FALSE, 0, size, bytes, nullptr,
                                    trace != nullptr ? &event : nullptr);
    if (trace != nullptr) trace->command(what, "transfer", event, size);
  });
  queue_->enqueued(1);
}

cl::Event Replica::stage(const void* x, const void* labels, int64_t rows) {
  if (rows > 0) {
    const auto n = static_cast<size_t>(rows);
    write(x_->buffer(), x, n * row_bytes_, "the input batch");
    if (labels != nullptr) write(labels_->buffer(), labels, n * label_bytes_, "the labels");
  }
  return marker();
}

void Replica::write_random(const StepRandom& random) {
  // A fill carries the words in the command itself, so nothing must outlive the call.
  const std::array<int32_t, 8> words = random.words();
  cl_int8 pattern;
  std::copy(words.begin(), words.end(), pattern.s);
  with_cl_errors("writing the random state", [&] {
    queue_->cl().enqueueFillBuffer(random_->buffer(), pattern, 0, sizeof(pattern));
  });
}

void Replica::forward_backward(int64_t rows, const StepRandom& random,
                               const CompiledGraph::Reached& reached) {
  write_random(random);
  last_rows_ = rows;
  train_.run(rows, /*grouped=*/true, reached);
}

void Replica::evaluate(int64_t rows) { eval_.run(rows); }

void Replica::forward(int64_t rows) { forward_.run(rows); }

std::vector<float> Replica::read_output(int64_t rows) {
  std::vector<float> out(static_cast<size_t>(rows) * output_floats_);
  with_cl_errors("reading the output", [&] {
    if (!out.empty()) {
      queue_->cl().enqueueReadBuffer(output_->buffer(), CL_TRUE, 0, out.size() * sizeof(float),
                                     out.data());
    }
  });
  return out;
}

void Replica::commit_statistics() {
  if (statistics_ == nullptr) return;
  const auto copy = [&](size_t offset, size_t size) {
    with_cl_errors("committing the statistics", [&] {
      queue_->cl().enqueueCopyBuffer(next_statistics_->buffer(), statistics_->buffer(), offset,
                                     offset, size);
    });
  };
  if (last_rows_ > 0) return copy(0, arena_bytes(graphs_.statistic_values));
  for (const Slot& slot : graphs_.statistics) {
    const ArenaLayout::Entry& entry = graphs_.statistic_values.find(slot.name);
    if (slot.merge == NETCL_MERGE_NONE && entry.desc.size_bytes() > 0)
      copy(static_cast<size_t>(entry.offset) * sizeof(float), entry.desc.size_bytes());
  }
}

void Replica::put_next_statistics(const cl::Buffer& arena) {
  copy(arena, next_statistics_->buffer(), 0, 0, graphs_.statistic_values.num_floats());
  last_rows_ = std::max<int64_t>(last_rows_, 1);
}

void Replica::accumulate(bool first) {
  if (first) {
    with_cl_errors("beginning a sum of gradients", [&] {
      queue_->cl().enqueueCopyBuffer(part_, send_, 0, 0, arena_bytes(graphs_.gradients));
    });
  } else {
    accumulate_.run(0);
  }
  commit_statistics();
}

void Replica::run_update(int64_t step, double lr, bool grouped) {
  if (part_storage_ == nullptr) commit_statistics();
  hyper_->write(optimizer_, graphs_.plan.groups, step, lr);
  update_.run(0, grouped);
}

size_t Replica::sums_size() const {
  return static_cast<size_t>(graphs_.sums_floats) + (norm_ != nullptr ? 1 : 0);
}

cl::Event Replica::read_sums(float* out, bool reduced) {
  return with_cl_errors("reading the sums", [&] {
    cl::Event event;
    queue_->cl().enqueueReadBuffer(reduced ? recv_ : send_, CL_FALSE, 0,
                                   static_cast<size_t>(graphs_.sums_floats) * sizeof(float), out,
                                   nullptr, &event);
    if (Trace* trace = queue_->recording())
      trace->command("the step's sums", "transfer", event,
                     static_cast<uint64_t>(graphs_.sums_floats) * sizeof(float));
    if (reduced && norm_ != nullptr) {
      queue_->cl().enqueueReadBuffer(norm_->buffer(), CL_FALSE, 0, sizeof(float),
                                     out + graphs_.sums_floats, nullptr, &event);
    }
    queue_->cl().flush();
    return event;
  });
}

cl::Event Replica::read_eval_sums(float* out) {
  return with_cl_errors("reading the evaluation's sums", [&] {
    cl::Event event;
    queue_->cl().enqueueReadBuffer(eval_sums_->buffer(), CL_FALSE, 0,
                                   arena_bytes(graphs_.eval_sums), out, nullptr, &event);
    queue_->cl().flush();
    return event;
  });
}

cl::Event Replica::marker() {
  return with_cl_errors("marking the queue", [&] {
    cl::Event event;
    queue_->cl().enqueueMarkerWithWaitList(nullptr, &event);
    queue_->cl().flush();
    return event;
  });
}

void Replica::initialise(uint64_t seed) {
  uint32_t index = 0;
  const auto values_of = [&](const std::vector<Slot>& slots, const ArenaLayout& layout) {
    std::vector<float> arena(static_cast<size_t>(layout.num_floats()), 0.0f);
    for (const Slot& slot : slots) {
      const std::vector<float> values = initial_values(slot, seed, index++);
      std::copy(values.begin(), values.end(), arena.begin() + layout.find(slot.name).offset);
    }
    return arena;
  };
  write_parameters(values_of(graphs_.slots, graphs_.parameters));
  write_statistics(values_of(graphs_.statistics, graphs_.statistic_values));
  reset_state();
}

void Replica::reset_state() {
  const std::vector<float> start(static_cast<size_t>(graphs_.parameters.num_floats()),
                                 static_cast<float>(optimizer_.initial_state()));
  for (size_t i = 0; i < states_.size(); ++i) {
    write_state(i, states_[i].first == step_names::kAverage ? read_parameters() : start);
  }
}

std::vector<float> Replica::read_arena(const cl::Buffer& buffer, const ArenaLayout& layout) {
  std::vector<float> out(static_cast<size_t>(layout.num_floats()));
  with_cl_errors("reading an arena", [&] {
    queue_->cl().enqueueReadBuffer(buffer, CL_TRUE, 0, out.size() * sizeof(float), out.data());
  });
  return out;
}

void Replica::write_arena(const cl::Buffer& buffer, const ArenaLayout& layout,
                          const std::vector<float>& arena) {
  NETCL_CHECK(static_cast<int64_t>(arena.size()) == layout.num_floats(), ErrorCode::kInternal,
              "an arena of ", arena.size(), " floats for one of ", layout.num_floats());
  with_cl_errors("writing an arena", [&] {
    queue_->cl().enqueueWriteBuffer(buffer, CL_TRUE, 0, arena.size() * sizeof(float), arena.data());
  });
}

std::vector<float> Replica::read_parameters() {
  return read_arena(parameters_->buffer(), graphs_.parameters);
}
std::vector<float> Replica::read_gradients() { return read_arena(recv_, graphs_.gradients); }
void Replica::write_parameters(const std::vector<float>& arena) {
  write_arena(parameters_->buffer(), graphs_.parameters, arena);
  if (share_) copy(parameters_->buffer(), updated_->buffer(), share_->first, 0, share_->count);
}
void Replica::copy_parameters_to(const cl::Buffer& buffer, int64_t offset) {
  with_cl_errors("copying the parameters", [&] {
    queue_->cl().enqueueCopyBuffer(parameters_->buffer(), buffer, 0,
                                   static_cast<size_t>(offset) * sizeof(float),
                                   arena_bytes(graphs_.parameters));
  });
}
void Replica::copy_parameters_from(const cl::Buffer& buffer, int64_t offset) {
  with_cl_errors("copying the parameters", [&] {
    queue_->cl().enqueueCopyBuffer(buffer, parameters_->buffer(),
                                   static_cast<size_t>(offset) * sizeof(float), 0,
                                   arena_bytes(graphs_.parameters));
  });
}
std::array<float, 2> Replica::read_loss_scale() {
  std::array<float, 2> out{};
  with_cl_errors("reading the loss scale", [&] {
    queue_->cl().enqueueReadBuffer(loss_scale_->buffer(), CL_TRUE, 0, sizeof(out), out.data());
  });
  return out;
}
void Replica::write_loss_scale(const std::array<float, 2>& state) {
  with_cl_errors("writing the loss scale", [&] {
    queue_->cl().enqueueWriteBuffer(loss_scale_->buffer(), CL_TRUE, 0, sizeof(state), state.data());
  });
}
std::vector<float> Replica::read_statistics() {
  if (statistics_ == nullptr) return {};
  return read_arena(statistics_->buffer(), graphs_.statistic_values);
}
void Replica::write_statistics(const std::vector<float>& arena) {
  if (statistics_ == nullptr && arena.empty()) return;
  write_arena(statistics_->buffer(), graphs_.statistic_values, arena);
}

}  // namespace netcl
