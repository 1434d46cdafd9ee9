// What a replica does with its share of a sharded update, and how states are read and written.
#include "core/distributed/replica.h"

namespace netcl {

namespace {

// The gaps between tensors are reduced and measured with the gradients, and must be zero again
// after something else has lain there.
void clear(const cl::CommandQueue& queue, const cl::Buffer& buffer, int64_t first, int64_t count) {
  if (count == 0) return;
  with_cl_errors("clearing a share of the gradients", [&] {
    queue.enqueueFillBuffer(buffer, 0.0f, static_cast<size_t>(first) * sizeof(float),
                            static_cast<size_t>(count) * sizeof(float));
  });
}

}  // namespace

FloatRange Replica::state_range() const {
  return share_.value_or(FloatRange{0, graphs_.parameters.num_floats()});
}

void Replica::copy(const cl::Buffer& from, const cl::Buffer& to, int64_t from_float,
                   int64_t to_float, int64_t floats) {
  if (floats == 0) return;
  const auto bytes = [](int64_t n) { return static_cast<size_t>(n) * sizeof(float); };
  with_cl_errors("copying a share of an arena", [&] {
    queue_->cl().enqueueCopyBuffer(from, to, bytes(from_float), bytes(to_float), bytes(floats));
  });
}

void Replica::put_parameters() {
  const FloatRange mine = state_range();
  copy(updated_->buffer(), send_, 0, graphs_.sums_floats + mine.first, mine.count);
}

void Replica::take_parameters() {
  copy(recv_, parameters_->buffer(), graphs_.sums_floats, 0, graphs_.parameters.num_floats());
  clear(queue_->cl(), send_, graphs_.sums_floats + state_range().first, state_range().count);
}

void Replica::put_state(size_t index) {
  const FloatRange mine = state_range();
  copy(states_.at(index).second->buffer(), send_, 0, graphs_.sums_floats + mine.first, mine.count);
}

void Replica::take_state(size_t index, bool to_host) {
  const int64_t floats = graphs_.parameters.num_floats();
  if (states_.at(index).first == step_names::kAverage && average_ != nullptr)
    copy(recv_, average_->buffer(), graphs_.sums_floats, 0, floats);
  if (to_host) {
    whole_states_.resize(states_.size());
    whole_states_[index].resize(static_cast<size_t>(floats));
    with_cl_errors("reading a state", [&] {
      queue_->cl().enqueueReadBuffer(
          recv_, CL_TRUE, static_cast<size_t>(graphs_.sums_floats) * sizeof(float),
          static_cast<size_t>(floats) * sizeof(float), whole_states_[index].data());
    });
  }
  // At last, since `send` and `recv` may be the same.
  clear(queue_->cl(), send_, graphs_.sums_floats + state_range().first, state_range().count);
}

std::vector<float> Replica::read_state(size_t index) {
  if (!share_) return read_arena(states_.at(index).second->buffer(), graphs_.parameters);
  NETCL_CHECK(index < whole_states_.size() && !whole_states_[index].empty(), ErrorCode::kInternal,
              "the state ", states_.at(index).first,
              " is shared over the replicas and was not gathered");
  return whole_states_[index];
}
void Replica::write_state(size_t index, const std::vector<float>& arena) {
  if (!share_) return write_arena(states_.at(index).second->buffer(), graphs_.parameters, arena);
  if (states_.at(index).first == step_names::kAverage && average_ != nullptr)
    write_arena(average_->buffer(), graphs_.parameters, arena);
  const auto first = arena.begin() + share_->first;
  write_state_range(index, {first, first + share_->count});
}
std::vector<float> Replica::read_state_range(size_t index) {
  std::vector<float> out(static_cast<size_t>(state_range().count));
  if (out.empty()) return out;
  with_cl_errors("reading a state", [&] {
    queue_->cl().enqueueReadBuffer(states_.at(index).second->buffer(), CL_TRUE, 0,
                                   out.size() * sizeof(float), out.data());
  });
  return out;
}
void Replica::write_state_range(size_t index, const std::vector<float>& values) {
  NETCL_CHECK(static_cast<int64_t>(values.size()) == state_range().count, ErrorCode::kInternal,
              values.size(), " floats for a state of ", state_range().count);
  if (values.empty()) return;
  with_cl_errors("writing a state", [&] {
    queue_->cl().enqueueWriteBuffer(states_.at(index).second->buffer(), CL_TRUE, 0,
                                    values.size() * sizeof(float), values.data());
  });
}

}  // namespace netcl
