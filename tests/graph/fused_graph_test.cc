// Fused ops on a device: served, declined or undeclared, the results are the host's, for batches
// full, ragged, one and none; declined costs what undeclared costs; marks keep their order.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "core/autograd/backward.h"
#include "core/base/error.h"
#include "core/graph/compiled_graph.h"
#include "core/graph/passes.h"
#include "core/ops/case_inputs.h"
#include "core/ops/fused.h"
#include "core/ops/host_recorder.h"
#include "core/tensor/tensor.h"
#include "tests/ops/device_fixture.h"

namespace netcl {
namespace testing {
namespace {

constexpr int64_t kMaxBatch = 13;
constexpr int64_t kColumns = 6;

// y = x sigmoid(x w), and its gradient; w is summed over the rows by one work-item a column.
constexpr const char* kSource = R"(
float s_of(float x, float w) { return 1.0f / (1.0f + exp(-x * w)); }
__kernel void gate_fused_test(__global const float* x, __global const float* w, __global float* y,
                              int columns) {
  const int i = (int)get_global_id(0);
  y[i] = x[i] * s_of(x[i], w[i % columns]);
}
__kernel void gate_fused_test_grad(__global const float* x, __global const float* w,
                                   __global const float* dy, __global float* dx,
                                   __global float* dw, int columns, int rows) {
  const int c = (int)get_global_id(0);
  float sum = 0.0f;
  for (int r = 0; r < rows; ++r) {
    const int i = r * columns + c;
    const float s = s_of(x[i], w[c]), slope = s * (1.0f - s);
    dx[i] = dy[i] * (s + x[i] * w[c] * slope);
    sum += dy[i] * x[i] * x[i] * slope;
  }
  dw[c] = sum;
}
)";

RecipeArg argument(uint32_t kind, uint32_t index, int64_t i = 0) {
  RecipeArg out;
  out.kind = kind;
  out.index = index;
  out.i = i;
  return out;
}

// The fixture's kernels, and test.gate with its gradient where `serves` says so.
class GateProvider : public KernelProvider {
 public:
  using Serves = std::function<bool(const KernelQuestion&)>;
  GateProvider(KernelProvider& others, Serves serves)
      : others_(others), serves_(std::move(serves)) {}

  std::shared_ptr<const Recipe> recipe(Device& device, const KernelQuestion& question) override {
    return others_.recipe(device, question);
  }
  std::shared_ptr<const Recipe> fused_recipe(Device&, const KernelQuestion& question) override {
    EXPECT_EQ(question.attrs.number("slope"), 0.5);
    if (!serves_(question)) return nullptr;
    const bool gradient = question.op.name == "test.gate.grad";
    EXPECT_EQ(question.in.size(), gradient ? 4u : 2u);
    const int64_t rows = question.in[0].shape[0];
    RecipeLaunch launch;
    launch.entry = gradient ? "gate_fused_test_grad" : "gate_fused_test";
    launch.source = kSource;
    launch.args = {argument(NETCL_ARG_INPUT, 0), argument(NETCL_ARG_INPUT, 1)};
    if (gradient) launch.args.push_back(argument(NETCL_ARG_INPUT, 3));
    launch.args.push_back(argument(NETCL_ARG_OUTPUT, 0));
    if (gradient) launch.args.push_back(argument(NETCL_ARG_OUTPUT, 1));
    launch.args.push_back(argument(NETCL_ARG_I32, 0, kColumns));
    if (gradient) launch.args.push_back(argument(NETCL_ARG_I32, 0, rows));
    launch.global = {static_cast<uint64_t>(gradient ? kColumns : rows * kColumns), 1, 1};
    auto out = std::make_shared<Recipe>();
    out->plugin = out->variant = "test";
    out->launches.push_back(std::move(launch));
    return out;
  }

 private:
  KernelProvider& others_;
  const Serves serves_;
};

bool always(const KernelQuestion&) { return true; }
bool never(const KernelQuestion&) { return false; }
bool forward_alone(const KernelQuestion& q) { return q.op.name == "test.gate"; }
bool backward_alone(const KernelQuestion& q) { return q.op.name == "test.gate.grad"; }
bool even_rows(const KernelQuestion& q) { return q.in[0].shape[0] % 2 == 0; }

// A dense layer, two gates (the second after a sum over the replicas), and all gradients.
template <typename Input, typename Output>
void record(Recorder& r, int64_t batch, bool declared, Input&& input, Output&& output) {
  const ValueId x = input("x", Shape{batch, 4}), m = input("m", Shape{4, kColumns});
  const ValueId w = input("w", Shape{kColumns});
  const auto gate = [&](ValueId v) {
    const ValueId y = r.call("mul", {v, r.call("sigmoid", {r.call("mul", {v, w})})});
    return declared ? r.fused("test.gate", {v, w}, {{"slope", 0.5}}, {y})[0] : y;
  };
  const ValueId h = gate(r.call("matmul", {x, m}));
  const ValueId mean =
      r.call("all_reduce", {r.call("sum", {h}, {{"axes", std::vector<int64_t>{0}}})});
  const ValueId y = gate(r.call("add", {h, mean}));
  const ValueId loss = r.call("sum", {r.call("mul", {y, y})});
  output("y", y);
  output("loss", loss);
  const auto grads = gradients(r, loss, std::nullopt, {m, w});
  output("grad/w", *grads[1]);
  output("grad/m", *grads[0]);
}

HostTensor value_of(const std::string& name, const Shape& shape) {
  return random_tensor(shape, -1, 1, 100u * static_cast<unsigned char>(name.back()));
}

std::map<std::string, HostTensor> on_host(int64_t batch) {
  HostRecorder r;
  std::map<std::string, HostTensor> out;
  record(
      r, batch, true,
      [&](const char* name, const Shape& shape) { return r.input(value_of(name, shape)); },
      [&](const char* name, ValueId v) { out[name] = r.value(v); });
  return out;
}

struct OnDevice {
  OnDevice(bool declared, GateProvider::Serves serves)
      : fixture(shared_device()), kernels(fixture.kernels(), std::move(serves)) {
    Graph graph;
    record(
        graph, -1, declared,
        [&](const char* name, const Shape& shape) {
          const ValueId v = graph.external(name, {DType::kF32, shape});
          names.push_back(name);
          add(name, shape);
          return v;
        },
        [&](const char* name, ValueId v) {
          add(name, graph.desc(v).shape);
          graph.output(name, v);
        });
    run_passes(graph);
    compiled = std::make_unique<CompiledGraph>(
        std::move(graph), kernels, fixture.queue(),
        [this](const std::string& name, const TensorDesc&) { return memory.at(name).buffer(); });
  }
  void add(const std::string& name, const Shape& shape) {
    memory.emplace(name, Tensor(fixture.queue(), {DType::kF32, shape.with_batch(kMaxBatch)}));
  }
  void fill(int64_t batch) {
    for (const std::string& name : names) {
      const Shape whole = memory.at(name).shape();
      const HostTensor value = value_of(name, name == "x" ? Shape{batch, 4} : whole);
      std::vector<float> floats(value.data.begin(), value.data.end());
      floats.resize(static_cast<size_t>(whole.num_elements()));
      memory.at(name).copy_from_host(floats.data());
    }
  }
  void run(int64_t batch) {
    fill(batch);
    compiled->run(batch);
  }
  DeviceFixture& fixture;
  GateProvider kernels;
  std::vector<std::string> names;
  std::map<std::string, Tensor> memory;
  std::unique_ptr<CompiledGraph> compiled;
};

void expect_equal(OnDevice& device, int64_t batch) {
  SCOPED_TRACE(::testing::Message() << "batch " << batch);
  for (const auto& [name, want] : on_host(batch)) {
    const std::vector<float> got = device.memory.at(name).to_floats();
    for (size_t i = 0; i < want.data.size(); ++i) {
      // Values of up to some hundred through a dozen roundings and sums of up to 13 terms.
      ASSERT_NEAR(static_cast<double>(got[i]), want.data[i], 3e-5 * (1 + std::fabs(want.data[i])))
          << name << " element " << i;
    }
  }
}

TEST(FusedGraphTest, WhateverServesTheResultsAreTheHosts) {
  const std::pair<const char*, GateProvider::Serves> ways[] = {{"always", always},
                                                               {"never", never},
                                                               {"forward", forward_alone},
                                                               {"backward", backward_alone},
                                                               {"even rows", even_rows}};
  for (const auto& [name, serves] : ways) {
    SCOPED_TRACE(name);
    OnDevice device(true, serves);
    for (const int64_t batch : {int64_t{7}, int64_t{1}, int64_t{0}, kMaxBatch, int64_t{8}}) {
      device.run(batch);
      expect_equal(device, batch);
    }
  }
}

TEST(FusedGraphTest, DeclinedCostsWhatUndeclaredCosts) {
  OnDevice undeclared(false, never), declined(true, never), served(true, always),
      by_shape(true, even_rows);
  for (OnDevice* device : {&undeclared, &declined, &served, &by_shape}) {
    device->compiled->prepare(7);
    device->compiled->prepare(8);
  }
  const auto launches = [](const OnDevice& device, int64_t batch) {
    return device.compiled->launches_per_run(batch);
  };
  EXPECT_EQ(launches(declined, 7), launches(undeclared, 7));
  EXPECT_EQ(declined.compiled->workspace_bytes(), undeclared.compiled->workspace_bytes());
  EXPECT_EQ(declined.compiled->temporaries_bytes(), undeclared.compiled->temporaries_bytes());
  EXPECT_LT(launches(served, 7), launches(undeclared, 7));
  EXPECT_LT(served.compiled->temporaries_bytes(), undeclared.compiled->temporaries_bytes());
  // Decided for each shape.
  EXPECT_EQ(launches(by_shape, 7), launches(undeclared, 7));
  EXPECT_EQ(launches(by_shape, 8), launches(served, 8));
}

// Replicas that serve differently pass marks and sums in one order, and at each mark what it names
// is complete.
TEST(FusedGraphTest, MarksKeepTheirOrderWhateverServes) {
  const std::vector<std::vector<std::string>> outputs = {{"grad/m"}, {"loss", "y"}, {"grad/w"}};
  std::vector<std::string> orders;
  for (const auto& serves :
       {GateProvider::Serves(always), GateProvider::Serves(never),
        GateProvider::Serves(forward_alone), GateProvider::Serves(backward_alone)}) {
    OnDevice device(true, serves);
    std::string order;
    Graph graph = device.compiled->graph();
    CompiledGraph compiled(
        std::move(graph), device.kernels, device.fixture.queue(),
        [&](const std::string& name, const TensorDesc&) { return device.memory.at(name).buffer(); },
        [&](const cl::Buffer& in, const cl::Buffer& out, const TensorDesc& desc) {
          order += "s";
          device.fixture.queue()->cl().enqueueCopyBuffer(in, out, 0, 0, desc.size_bytes());
        });
    compiled.set_marks(outputs);
    device.fill(7);
    const auto want = on_host(7);
    compiled.run(7, true, [&](size_t mark) {
      order += std::to_string(mark);
      device.fixture.queue()->finish();
      for (const std::string& name : outputs[mark]) {
        const HostTensor& tensor = want.at(name);
        const std::vector<float> got = device.memory.at(name).to_floats();
        for (size_t i = 0; i < tensor.data.size(); ++i) {
          ASSERT_NEAR(static_cast<double>(got[i]), tensor.data[i],
                      3e-5 * (1 + std::fabs(tensor.data[i])))
              << name << " at mark " << mark;
        }
      }
    });
    device.fixture.queue()->finish();
    orders.push_back(order);
  }
  for (const std::string& order : orders) EXPECT_EQ(order, orders[0]);
  EXPECT_EQ(orders[0].substr(0, 2), "s1");
}

TEST(FusedGraphTest, ATensorThatIsTooLargeIsNamedWhereItsOpStands) {
  OnDevice device(true, never);
  const int64_t most = device.fixture.device().info().max_alloc_bytes;
  const int64_t batch = most / (kColumns * 4) + 1;
  try {
    device.compiled->prepare(batch);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kDevice);
    EXPECT_NE(e.message().find("the output of matmul"), std::string::npos) << e.message();
  }
}

}  // namespace
}  // namespace testing
}  // namespace netcl
