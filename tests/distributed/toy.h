// A small classification problem and its model, for tests that train on a device: three clouds of
// points in eight dimensions, 203 samples (so that batches are ragged).
#ifndef NETCL_TESTS_DISTRIBUTED_TOY_H_
#define NETCL_TESTS_DISTRIBUTED_TOY_H_

#include <memory>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/distributed/replica.h"
#include "core/nn/step_graphs.h"
#include "core/ops/case_inputs.h"
#include "tests/nn/fake_layers.h"
#include "tests/ops/device_fixture.h"

namespace netcl {
namespace testing {

constexpr int64_t kToySamples = 203;

inline Dataset toy_dataset() {
  std::vector<float> features;
  std::vector<int32_t> labels;
  const HostTensor noise = random_tensor({kToySamples, 8}, -1, 1, 5);
  for (int64_t i = 0; i < kToySamples; ++i) {
    const int32_t label = static_cast<int32_t>(i % 3);
    labels.push_back(label);
    for (int64_t d = 0; d < 8; ++d) {
      const double centre = d % 3 == label ? 1.5 : 0;
      features.push_back(static_cast<float>(centre + noise.data[static_cast<size_t>(i * 8 + d)]));
    }
  }
  DatasetSpec spec;
  spec.sample_shape = Shape{8};
  spec.num_samples = kToySamples;
  spec.features = features.data();
  spec.labels = labels.data();
  return Dataset::create(spec);
}

// One worker's part of a run on the test's device.
struct ToyReplica {
  // `alone`: the reduced gradients are its own. `dropout`: a dropout layer in the middle.
  explicit ToyReplica(bool alone = true, bool dropout = false,
                      Optimizer opt = Optimizer::adamw(0.01), bool accumulates = false)
      : optimizer(opt) {
    DeviceFixture& f = shared_device();
    StepSpec spec;
    spec.input = Shape{8};
    spec.layers = nlohmann::ordered_json::parse(
        std::string(R"([{"type": "dense", "out": 16}, {"type": "act", "fn": "tanh"},)") +
        (dropout ? R"({"type": "drop", "p": 0.25},)" : "") + R"({"type": "dense", "out": 3}])");
    spec.optimizer = optimizer;
    FakeLayers layers;
    graphs = build_step_graphs(spec, layers);
    const auto bytes = static_cast<size_t>(graphs.gradients.num_floats()) * sizeof(float);
    send = f.device().make_buffer(bytes, "gradients");
    recv = alone ? send : f.device().make_buffer(bytes, "reduced gradients");
    replica = std::make_unique<Replica>(graphs, optimizer, f.kernels(), f.queue(), send, recv,
                                        kToySamples, nullptr, accumulates);
    replica->initialise(11);
  }

  Optimizer optimizer;
  StepGraphs graphs;
  cl::Buffer send, recv;
  std::unique_ptr<Replica> replica;
};

}  // namespace testing
}  // namespace netcl

#endif  // NETCL_TESTS_DISTRIBUTED_TOY_H_
