// A recorded graph on the shared device, with memory for what goes in and comes out, beside the
// same computation on the double-precision host. Threads: one.
#ifndef NETCL_TESTS_GRAPH_GRAPH_ON_DEVICE_H_
#define NETCL_TESTS_GRAPH_GRAPH_ON_DEVICE_H_

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/graph/compiled_graph.h"
#include "core/graph/passes.h"
#include "core/ops/case_inputs.h"
#include "core/ops/host_recorder.h"
#include "core/tensor/tensor.h"
#include "tests/ops/device_fixture.h"

namespace netcl {
namespace testing {

using GraphInput = std::function<ValueId(const char* name, const Shape& shape)>;
using GraphOutput = std::function<void(const char* name, ValueId value)>;
// Records a computation on a batch of `batch` samples (-1: symbolic) with named ends.
using GraphRecord =
    std::function<void(Recorder&, int64_t batch, const GraphInput&, const GraphOutput&)>;

// The value of an input, made from its name.
inline HostTensor graph_value(const std::string& name, const Shape& shape) {
  return random_tensor(shape, -1, 1, name.size() + 100u * static_cast<unsigned char>(name.back()));
}

inline std::map<std::string, HostTensor> graph_on_host(const GraphRecord& record, int64_t batch) {
  HostRecorder r;
  std::map<std::string, HostTensor> out;
  record(
      r, batch,
      [&](const char* name, const Shape& shape) { return r.input(graph_value(name, shape)); },
      [&](const char* name, ValueId v) { out[name] = r.value(v); });
  return out;
}

class GraphOnDevice {
 public:
  // Batches of at most `most` samples. `kernels` outlives the object.
  GraphOnDevice(const GraphRecord& record, int64_t most, bool with_passes, KernelProvider& kernels)
      : queue_(shared_device().queue()), most_(most) {
    Graph graph;
    record(
        graph, -1,
        [&](const char* name, const Shape& shape) {
          inputs_.push_back({name, shape});
          return graph.external(name, add(name, shape));
        },
        [&](const char* name, ValueId v) {
          add(name, graph.desc(v).shape);
          graph.output(name, v);
        });
    if (with_passes) run_passes(graph);
    compiled_ = std::make_unique<CompiledGraph>(std::move(graph), kernels, queue_, memory());
  }

  CompiledGraph& compiled() { return *compiled_; }
  Tensor& at(const std::string& name) { return tensors_.at(name); }
  CompiledGraph::Memory memory() {
    return [this](const std::string& name, const TensorDesc&) { return at(name).buffer(); };
  }
  void fill(int64_t batch) {
    for (const auto& [name, shape] : inputs_) {
      const HostTensor value = graph_value(name, shape.with_batch(batch));
      std::vector<float> floats(value.data.begin(), value.data.end());
      floats.resize(static_cast<size_t>(at(name).shape().num_elements()));
      at(name).copy_from_host(floats.data());
    }
  }
  void run(int64_t batch) {
    fill(batch);
    compiled_->run(batch);
  }
  // Elements lie within `tolerance` times their size, or that of 1.
  void expect(const std::string& name, const HostTensor& want, double tolerance) {
    const std::vector<float> got = at(name).to_floats();
    ASSERT_GE(got.size(), want.data.size());
    for (size_t i = 0; i < want.data.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(got[i]), want.data[i],
                  tolerance * (1 + std::fabs(want.data[i])))
          << name << " element " << i;
    }
  }

 private:
  TensorDesc add(const std::string& name, const Shape& shape) {
    tensors_.emplace(name, Tensor(queue_, {DType::kF32, shape.with_batch(most_)}));
    return {DType::kF32, shape};
  }

  std::shared_ptr<Queue> queue_;
  const int64_t most_;
  std::vector<std::pair<std::string, Shape>> inputs_;
  std::map<std::string, Tensor> tensors_;
  std::unique_ptr<CompiledGraph> compiled_;
};

}  // namespace testing
}  // namespace netcl

#endif  // NETCL_TESTS_GRAPH_GRAPH_ON_DEVICE_H_
