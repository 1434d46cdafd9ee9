#include "apps/netcl_app/tune/timed_kernels.h"

#include <algorithm>

#include "core/base/clock.h"
#include "core/verify/host_bytes.h"

namespace netcl::app {

namespace {

constexpr double kSampleSeconds = 0.002;
constexpr int kMostRuns = 1000;

std::vector<cl::Buffer> buffers_of(const std::vector<std::shared_ptr<Storage>>& storages) {
  std::vector<cl::Buffer> out;
  for (const auto& storage : storages) out.push_back(storage->buffer());
  return out;
}

}  // namespace

TimedKernels::TimedKernels(std::shared_ptr<Queue> queue, const std::vector<HostTensor>& in,
                           const std::vector<TensorDesc>& out)
    : queue_(std::move(queue)) {
  for (const HostTensor& tensor : in) {
    const std::vector<uint8_t> bytes = to_bytes(tensor);
    in_.push_back(queue_->allocate(bytes.size(), "an input"));
    if (!bytes.empty()) queue_->write(*in_.back(), bytes.size(), bytes.data());
  }
  for (const TensorDesc& desc : out)
    out_.push_back(queue_->allocate(desc.size_bytes(), "an output"));
}

std::unique_ptr<Executable> TimedKernels::bind(const Recipe& recipe) {
  auto out = std::make_unique<Executable>(queue_->device(), recipe);
  std::vector<cl::Buffer> scratch;
  for (const uint64_t bytes : recipe.scratch_bytes) {
    scratch_.push_back(queue_->allocate(bytes, "scratch"));
    scratch.push_back(scratch_.back()->buffer());
  }
  out->bind(buffers_of(in_), buffers_of(out_), scratch);
  return out;
}

int TimedKernels::runs_a_sample(const Executable& kernel) {
  sample(kernel, 1);  // compiles what the driver has put off
  const double seconds = sample(kernel, 1) * 1e-6;
  return static_cast<int>(std::clamp(kSampleSeconds / seconds, 1.0, double{kMostRuns}));
}

double TimedKernels::sample(const Executable& kernel, int runs) {
  const double start = now_seconds();
  for (int i = 0; i < runs; ++i) kernel.enqueue(queue_->cl());
  queue_->finish();
  return (now_seconds() - start) * 1e6 / runs;
}

}  // namespace netcl::app
