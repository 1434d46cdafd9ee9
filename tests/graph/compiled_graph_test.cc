// A compiled graph on a device against the double-precision host: batch sizes full, ragged, one and
// none, with and without passes.
#include "core/graph/compiled_graph.h"

#include <gtest/gtest.h>

#include <map>

#include "core/autograd/backward.h"
#include "core/base/error.h"
#include "core/tensor/tensor.h"
#include "tests/graph/graph_on_device.h"
#include "tests/ops/device_fixture.h"

namespace netcl {
namespace testing {
namespace {

constexpr int64_t kMaxBatch = 13;

// Two dense layers with their gradients.
void record(Recorder& r, int64_t batch, const GraphInput& input, const GraphOutput& output) {
  const ValueId x = input("x", Shape{batch, 6}), w1 = input("w1", Shape{6, 9});
  const ValueId b1 = input("b1", Shape{9}), w2 = input("w2", Shape{9, 4});
  const ValueId h = r.call("tanh", {r.call("matmul", {x, w1, b1})});
  const ValueId y = r.call("softmax", {r.call("matmul", {h, w2})});
  const ValueId loss = r.call("sum", {r.call("mul", {y, y})});
  output("loss", loss);
  output("y", y);
  const auto grads = gradients(r, loss, std::nullopt, {w1, b1, w2});
  output("grad/w1", *grads[0]);
  output("grad/b1", *grads[1]);
  output("grad/w2", *grads[2]);
}

struct OnDevice : GraphOnDevice {
  explicit OnDevice(bool with_passes)
      : GraphOnDevice(record, kMaxBatch, with_passes, shared_device().kernels()) {}
};

void expect_equal(OnDevice& device, int64_t batch) {
  SCOPED_TRACE(::testing::Message() << "batch " << batch);
  // Values of order one through some ten roundings and sums of up to 13 terms.
  for (const auto& [name, want] : graph_on_host(record, batch)) device.expect(name, want, 1e-5);
}

TEST(CompiledGraphTest, EveryBatchSizeWithAndWithoutPasses) {
  for (const bool with_passes : {false, true}) {
    SCOPED_TRACE(with_passes ? "with passes" : "without passes");
    OnDevice device(with_passes);
    // Small, then larger (the workspace grows), then old instances again.
    for (const int64_t batch :
         {int64_t{7}, int64_t{1}, int64_t{0}, kMaxBatch, int64_t{7}, int64_t{0}}) {
      device.run(batch);
      expect_equal(device, batch);
    }
  }
}

TEST(CompiledGraphTest, MarksComeWhenTheirOutputsAreWritten) {
  for (const bool with_passes : {false, true}) {
    OnDevice device(with_passes);
    const std::vector<std::vector<std::string>> outputs = {
        {"grad/w2"}, {"loss"}, {"grad/w1", "grad/b1"}};
    device.compiled().set_marks(outputs);
    for (const int64_t batch : {int64_t{7}, int64_t{0}}) {
      device.run(batch);  // fills the inputs
      shared_device().queue()->finish();
      std::map<std::string, std::vector<float>> want;
      for (const auto& mark : outputs) {
        for (const std::string& name : mark) {
          want[name] = device.at(name).to_floats();
          const std::vector<float> other(want[name].size(), -7);
          device.at(name).copy_from_host(other.data());
        }
      }
      std::vector<size_t> order;
      device.compiled().run(batch, true, [&](size_t mark) {
        order.push_back(mark);
        shared_device().queue()->finish();  // what is enqueued so far must be enough
        for (const std::string& name : outputs[mark])
          EXPECT_EQ(device.at(name).to_floats(), want[name]) << name;
      });
      EXPECT_EQ(order, (std::vector<size_t>{1, 0, 2})) << "batch " << batch;
    }
  }
}

TEST(CompiledGraphTest, MarksAndSumsComeInOneOrder) {
  DeviceFixture& f = shared_device();
  std::map<std::string, Tensor> memory;
  Graph graph;
  const ValueId x = graph.external("x", {DType::kF32, {3}});
  const ValueId first = graph.call("all_reduce", {x});
  const ValueId second = graph.call("all_reduce", {graph.call("neg", {first})});
  graph.output("first", first);
  graph.output("second", second);
  graph.output("last", graph.call("neg", {second}));
  for (const char* name : {"x", "first", "second", "last"})
    memory.emplace(name, Tensor(f.queue(), {DType::kF32, {3}}));
  std::string order;
  CompiledGraph compiled(
      std::move(graph), f.kernels(), f.queue(),
      [&](const std::string& name, const TensorDesc&) { return memory.at(name).buffer(); },
      [&](const cl::Buffer&, const cl::Buffer&, const TensorDesc&) { order += "s"; });
  compiled.set_marks({{"last"}, {"second"}, {"first"}});
  compiled.run(0, true, [&](size_t mark) { order += std::to_string(mark); });
  EXPECT_EQ(order, "s2s10");
  f.queue()->finish();
}

TEST(CompiledGraphTest, PassesSaveLaunches) {
  OnDevice plain(false), fused(true);
  plain.compiled().prepare(7);
  fused.compiled().prepare(7);
  EXPECT_LT(fused.compiled().launches_per_run(7), plain.compiled().launches_per_run(7));
}

TEST(CompiledGraphTest, TemporariesShareMemory) {
  DeviceFixture& f = shared_device();
  const Tensor x(f.queue(), {DType::kF32, {4, 1024}}), y(f.queue(), {DType::kF32, {4, 1024}});
  Graph graph;
  ValueId v = graph.external("x", {DType::kF32, {-1, 1024}});
  for (int i = 0; i < 10; ++i) v = graph.call("neg", {v});
  graph.output("y", v);
  CompiledGraph compiled(
      std::move(graph), f.kernels(), f.queue(),
      [&](const std::string& name, const TensorDesc&) { return (name == "x" ? x : y).buffer(); });
  compiled.prepare(4);
  EXPECT_EQ(compiled.temporaries_bytes(), 9u * 4 * 1024 * sizeof(float));
  EXPECT_EQ(compiled.workspace_bytes(), 2u * 4 * 1024 * sizeof(float));
  compiled.prepare(1);  // a smaller instance lives in the same workspace
  EXPECT_EQ(compiled.workspace_bytes(), 2u * 4 * 1024 * sizeof(float));
}

// Said before any memory is asked for: which value, of which layer, how large, and the limit.
TEST(CompiledGraphTest, NamesWhatDoesNotFit) {
  DeviceFixture& f = shared_device();
  const int64_t limit = f.device().info().max_alloc_bytes, width = int64_t{1} << 20;
  Graph graph;
  const ValueId x = graph.external("x", {DType::kF32, {-1, 1}});
  const ValueId y = graph.call("broadcast_to", {x}, {{"shape", Shape{-1, width}}});
  const auto grads = gradients(graph, graph.call("sum", {graph.call("mul", {y, y})}), {}, {x});
  graph.set_origin(y, "model.layers[3] (repeat)");
  graph.output("grad", *grads[0]);
  CompiledGraph compiled(std::move(graph), f.kernels(), f.queue(),
                         [](const std::string& name, const TensorDesc&) {
                           ADD_FAILURE() << "memory for " << name;
                           return cl::Buffer();
                         });
  const int64_t batch = limit / width / 4 + 1;
  try {
    compiled.prepare(batch);
    FAIL() << "a tensor larger than the device allocates was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kDevice);
    for (const std::string& word :
         {std::string("the output of broadcast_to in model.layers[3] (repeat)"),
          TensorDesc{DType::kF32, {batch, width}}.str(), std::to_string(batch * width * 4),
          std::to_string(limit), std::string("batch_size")})
      EXPECT_NE(e.message().find(word), std::string::npos) << word << " in: " << e.message();
  }
}

TEST(CompiledGraphTest, ReplayAllocatesNothing) {
  OnDevice device(true);
  device.compiled().prepare(7);
  const size_t before = shared_device().queue()->pool_bytes();
  for (int i = 0; i < 500; ++i) device.compiled().run(7);
  shared_device().queue()->finish();
  EXPECT_EQ(shared_device().queue()->pool_bytes(), before);
}

}  // namespace
}  // namespace testing
}  // namespace netcl
