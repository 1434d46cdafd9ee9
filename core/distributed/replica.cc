#include "core/distributed/replica.h"

#include <algorithm>

#include "core/nn/init.h"

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

Replica::Replica(const StepGraphs& graphs, const Optimizer& optimizer, KernelProvider& kernels,
                 std::shared_ptr<Queue> queue, cl::Buffer send, cl::Buffer recv, int64_t max_rows,
                 CompiledGraph::AllReduce all_reduce)
    : graphs_(graphs),
      optimizer_(optimizer),
      queue_(std::move(queue)),
      send_(std::move(send)),
      recv_(std::move(recv)),
      train_(
          graphs.train, kernels, queue_,
          [this](const auto& n, const auto& d) { return memory(n, d); }, std::move(all_reduce)),
      eval_(graphs.eval, kernels, queue_,
            [this](const auto& n, const auto& d) { return memory(n, d); }),
      update_(graphs.update, kernels, queue_,
              [this](const auto& n, const auto& d) { return memory(n, d); }) {
  const auto rows = static_cast<size_t>(std::max<int64_t>(max_rows, 1));
  for (const Graph::Place& place : graphs.train.externals()) {
    if (place.name != step_names::kX) continue;
    row_bytes_ =
        TensorDesc{DType::kF32, graphs.train.desc(place.value).shape.with_batch(1)}.size_bytes();
  }
  x_ = queue_->allocate(rows * row_bytes_, "the input batch");
  labels_ = queue_->allocate(rows * sizeof(int32_t), "the labels");
  random_ = queue_->allocate(8 * sizeof(int32_t), "the random state");
  hyper_ = queue_->allocate(8 * sizeof(float), "the hyper-parameters");
  parameters_ = queue_->allocate(arena_bytes(graphs.parameters), "the parameters");
  const size_t statistics_bytes = arena_bytes(graphs.statistic_values);
  if (statistics_bytes > 0) {
    statistics_ = queue_->allocate(statistics_bytes, "the statistics");
    next_statistics_ = queue_->allocate(statistics_bytes, "the next statistics");
  }
  for (const std::string& name : optimizer_.state_names()) {
    states_.emplace_back(
        name, queue_->allocate(arena_bytes(graphs.parameters), "the optimiser's " + name));
  }
  clear_gradients();
}

// The gaps of the arena are never written by kernels, but reduced like the rest.
void Replica::clear_gradients() {
  with_cl_errors("clearing the gradients", [&] {
    queue_->cl().enqueueFillBuffer(send_, 0.0f, 0, arena_bytes(graphs_.gradients));
  });
}

void Replica::warm_up(int64_t rows) {
  with_cl_errors("clearing the labels", [&] {
    queue_->cl().enqueueFillBuffer(labels_->buffer(), cl_int{0}, 0, labels_->size_bytes());
  });
  const std::vector<float> parameters = read_parameters();
  std::vector<std::vector<float>> states;
  for (size_t i = 0; i < states_.size(); ++i) states.push_back(read_state(i));
  const std::vector<float> statistics = read_statistics();
  write_random({});
  train_.run(rows, /*grouped=*/false);
  evaluate(rows);
  update(1, 0);
  clear_gradients();
  write_parameters(parameters);
  write_statistics(statistics);
  for (size_t i = 0; i < states_.size(); ++i) write_state(i, states[i]);
  queue_->finish();
}

cl::Buffer Replica::memory(const std::string& name, const TensorDesc& desc) {
  const std::pair<const char*, const Storage*> whole[] = {
      {step_names::kX, x_.get()},
      {step_names::kLabels, labels_.get()},
      {step_names::kRandom, random_.get()},
      {step_names::kHyper, hyper_.get()},
      {step_names::kParameters, parameters_.get()}};
  for (const auto& [known, storage] : whole) {
    if (name == known) return storage->buffer();
  }
  for (const auto& [known, storage] : states_) {
    if (name == known) return storage->buffer();
  }
  return with_cl_errors("placing " + name, [&] {
    // Whole: sub-buffers that overlap without being equal crash NVIDIA's driver (580).
    if (name == step_names::kGradients) return recv_;
    if (name == step_names::kDivisor) {
      return slice(recv_, graphs_.gradients.find(step_names::kDenominator).offset,
                   desc.size_bytes());
    }
    const auto& sums = graphs_.sums;
    if (std::find(sums.begin(), sums.end(), name) != sums.end() || name.rfind("grad/", 0) == 0) {
      return slice(send_, graphs_.gradients.find(name).offset, desc.size_bytes());
    }
    const auto& statistics = graphs_.statistics;
    const bool next = name.rfind("next/", 0) == 0;
    const std::string plain = next ? name.substr(5) : name;
    if (next || std::any_of(statistics.begin(), statistics.end(),
                            [&](const Slot& slot) { return slot.name == plain; })) {
      return slice((next ? next_statistics_ : statistics_)->buffer(),
                   graphs_.statistic_values.find(plain).offset, desc.size_bytes());
    }
    return slice(parameters_->buffer(), graphs_.parameters.find(name).offset, desc.size_bytes());
  });
}

void Replica::write(const cl::Buffer& buffer, const void* bytes, size_t size, const char* what) {
  with_cl_errors(std::string("writing ") + what,
                 [&] { queue_->cl().enqueueWriteBuffer(buffer, CL_FALSE, 0, size, bytes); });
  queue_->enqueued(1);
}

cl::Event Replica::stage(const float* x, const int32_t* labels, int64_t rows) {
  if (rows > 0) {
    const auto n = static_cast<size_t>(rows);
    write(x_->buffer(), x, n * row_bytes_, "the input batch");
    write(labels_->buffer(), labels, n * sizeof(int32_t), "the labels");
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

void Replica::forward_backward(int64_t rows, const StepRandom& random) {
  write_random(random);
  train_.run(rows);
}

void Replica::evaluate(int64_t rows) { eval_.run(rows); }

void Replica::commit_statistics() {
  if (statistics_ == nullptr) return;
  with_cl_errors("committing the statistics", [&] {
    queue_->cl().enqueueCopyBuffer(next_statistics_->buffer(), statistics_->buffer(), 0, 0,
                                   arena_bytes(graphs_.statistic_values));
  });
}

void Replica::update(int64_t step, double lr) {
  commit_statistics();
  const std::array<float, 8> values = optimizer_.hyper(step, lr);
  cl_float8 pattern;
  std::copy(values.begin(), values.end(), pattern.s);
  with_cl_errors("writing the hyper-parameters", [&] {
    queue_->cl().enqueueFillBuffer(hyper_->buffer(), pattern, 0, sizeof(pattern));
  });
  update_.run(0);
}

cl::Event Replica::read_sums(float* out, bool reduced) {
  return with_cl_errors("reading the sums", [&] {
    cl::Event event;
    queue_->cl().enqueueReadBuffer(reduced ? recv_ : send_, CL_FALSE, 0,
                                   static_cast<size_t>(graphs_.sums_floats) * sizeof(float), out,
                                   nullptr, &event);
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
  const std::vector<float> zeros(static_cast<size_t>(graphs_.parameters.num_floats()), 0.0f);
  for (size_t i = 0; i < states_.size(); ++i) write_state(i, zeros);
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
}
std::vector<float> Replica::read_statistics() {
  if (statistics_ == nullptr) return {};
  return read_arena(statistics_->buffer(), graphs_.statistic_values);
}
void Replica::write_statistics(const std::vector<float>& arena) {
  if (statistics_ == nullptr && arena.empty()) return;
  write_arena(statistics_->buffer(), graphs_.statistic_values, arena);
}
std::vector<float> Replica::read_state(size_t index) {
  return read_arena(states_.at(index).second->buffer(), graphs_.parameters);
}
void Replica::write_state(size_t index, const std::vector<float>& arena) {
  write_arena(states_.at(index).second->buffer(), graphs_.parameters, arena);
}

}  // namespace netcl
