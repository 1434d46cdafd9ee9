#include "core/distributed/flat_update.h"

#include <algorithm>

#include "core/base/error.h"

namespace netcl {

namespace {

size_t bytes_of(int64_t floats) { return static_cast<size_t>(floats) * sizeof(float); }

}  // namespace

FlatUpdate::FlatUpdate(const ArenaLayout& parameters, const Optimizer& optimizer,
                       KernelProvider& kernels, std::shared_ptr<Queue> queue, cl::Buffer gradients,
                       const GradientPlaces& places)
    : optimizer_(optimizer),
      plan_(plan_update(optimizer, parameters)),
      num_floats_(parameters.num_floats()),
      queue_(std::move(queue)),
      gradients_(std::move(gradients)),
      parameters_(queue_->allocate(bytes_of(num_floats_), "the parameters")),
      hyper_(queue_, plan_.groups.size()),
      update_(update_graph(optimizer, plan_, places.num_floats, places.first), kernels, queue_,
              [this](const std::string& name, const TensorDesc&) { return memory(name); }) {
  divisor_ = with_cl_errors("placing the denominator", [&] {
    cl_buffer_region region{bytes_of(places.denominator), sizeof(float)};
    return gradients_.createSubBuffer(CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region);
  });
  others_.emplace_back(step_names::kBlocks, table(plan_.blocks, "the table of blocks"));
  others_.emplace_back(step_names::kSlots, table(plan_.slots, "the table of slots"));
  others_.emplace_back(step_names::kGradNorm,
                       queue_->allocate(sizeof(float), "the gradient's norm"));
  for (const std::string& state : plan_.states) {
    others_.emplace_back(state,
                         queue_->allocate(bytes_of(num_floats_), "the optimiser's " + state));
  }
}

std::shared_ptr<Storage> FlatUpdate::table(const std::vector<int32_t>& values,
                                           const std::string& what) {
  auto out = queue_->allocate(values.size() * sizeof(int32_t), what);
  with_cl_errors("writing " + what, [&] {
    queue_->cl().enqueueWriteBuffer(out->buffer(), CL_TRUE, 0, values.size() * sizeof(int32_t),
                                    values.data());
  });
  return out;
}

void FlatUpdate::write(const Storage& to, const std::vector<float>& values) {
  NETCL_CHECK(static_cast<int64_t>(values.size()) == num_floats_, ErrorCode::kInternal,
              "an arena of ", values.size(), " floats for one of ", num_floats_);
  with_cl_errors("writing an arena", [&] {
    queue_->cl().enqueueWriteBuffer(to.buffer(), CL_TRUE, 0, values.size() * sizeof(float),
                                    values.data());
  });
}

cl::Buffer FlatUpdate::memory(const std::string& name) {
  if (name == step_names::kParameters) return parameters_->buffer();
  if (name == step_names::kGradients) return gradients_;
  if (name == step_names::kDivisor) return divisor_;
  if (name == step_names::kHyper) return hyper_.storage().buffer();
  for (const Named& other : others_) {
    if (other.first == name) return other.second->buffer();
  }
  fail(ErrorCode::kInternal, "the update asks for ", name, ", which nobody has");
}

void FlatUpdate::start(const std::vector<float>& arena) {
  write(*parameters_, arena);
  const std::vector<float> first(arena.size(), static_cast<float>(optimizer_.initial_state()));
  for (const std::string& state : plan_.states) {
    for (const Named& other : others_) {
      if (other.first == state) write(*other.second, state == step_names::kAverage ? arena : first);
    }
  }
}

void FlatUpdate::step(int64_t step, double lr) {
  hyper_.write(optimizer_, plan_.groups, step, lr);
  update_.run(0);
}

}  // namespace netcl
