// Convolution and pooling layers, on a device and through their plugin, against PyTorch's outputs
// and gradients (conv_ops.json, made by conv_ops.py); and what they say of models that do not fit.
#include <gtest/gtest.h>

#include "core/autograd/backward.h"
#include "core/autograd/tape.h"
#include "core/base/error.h"
#include "core/graph/graph.h"
#include "tests/pytorch/harness.h"

namespace netcl {
namespace testing {
namespace {
// Sums of up to 36 products in f32 against double; the largest element gives the scale.
constexpr double kTolerance = 1e-5;

void check_case(const ordered_json& c) {
  Tape tape(shared_device().eager());
  const auto watch = [&](const ordered_json& json) {
    return tape.watch(upload(host_tensor(json)));
  };
  const ValueId x = watch(c.at("x"));
  const TracedLayer layer(tape, c.at("layer"), x, [&](const std::string& name, const Slot&) {
    return watch(c.at("slots").at(name));
  });
  ASSERT_EQ(layer.slots.size(), c.at("slots").size());
  expect_near(download(tape.tensor(layer.y)), c.at("y"), kTolerance, "y");
  std::vector<ValueId> wanted = {x};
  for (const auto& grad : c.at("grads").items()) wanted.push_back(layer.slots.at(grad.key()));
  const auto grads = tape.backward(layer.y, wanted, watch(c.at("dy")));
  expect_near(download(grads[0].value()), c.at("dx"), kTolerance, "dx");
  size_t i = 1;
  for (const auto& grad : c.at("grads").items())
    expect_near(download(grads[i++].value()), grad.value(), kTolerance,
                "gradient of " + grad.key());
}

TEST(ConvOpsTest, EqualPyTorchs) {
  const ordered_json data = read_reference("conv_ops");
  ASSERT_GE(data.at("cases").size(), 18u);
  for (const ordered_json& c : data.at("cases")) {
    SCOPED_TRACE(c.at("layer").dump());
    check_case(c);
  }
}

// What a model with a symbolic batch of samples of this shape says, or the output's shape.
std::string traced(const Shape& sample, const std::string& json) {
  LayerSet layers(shared_device().plugins());
  Graph graph;
  std::vector<int64_t> dims = {-1};
  dims.insert(dims.end(), sample.dims().begin(), sample.dims().end());
  const ValueId x = graph.external("x", {DType::kF32, Shape(dims)});
  std::vector<Slot> slots;
  std::vector<ValueId> wanted;
  Tracer tracer(
      graph, layers, slots,
      [&](const Slot& slot) {
        wanted.push_back(graph.external(slot.name, slot.desc));
        return wanted.back();
      },
      []() -> ValueId { fail(ErrorCode::kUsage, "no random state"); }, {});
  try {
    const ValueId y = tracer.sequence(ordered_json::parse(json), "model.layers", x);
    if (!wanted.empty()) {  // the backward ops' shape rules must know the symbolic batch too
      for (const auto& grad : gradients(graph, y, std::nullopt, wanted)) EXPECT_TRUE(grad);
    }
    return graph.desc(y).shape.str();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    return e.message();
  }
}

TEST(ConvLayersTest, TraceWithASymbolicBatch) {
  EXPECT_EQ(traced({28, 28}, R"([{"type": "reshape", "shape": [1, 28, 28]},
      {"type": "conv2d", "out": 6, "kernel": 5, "padding": 2}, {"type": "max_pool2d", "kernel": 2},
      {"type": "conv2d", "out": 16, "kernel": [5]}, {"type": "avg_pool2d", "kernel": [2, 2]},
      {"type": "conv_transpose2d", "out": 4, "kernel": 2, "stride": 2},
      {"type": "adaptive_max_pool2d", "output": [3, 2]}, {"type": "adaptive_avg_pool2d", "output": 2},
      {"type": "global_avg_pool"}, {"type": "reshape", "shape": [2, -1]},
      {"type": "conv1d", "out": 3, "kernel": 2}, {"type": "max_pool1d", "kernel": 1}])"),
            "[B,3,1]");
}

TEST(ConvLayersTest, RefusalsSayWhatToDo) {
  struct Refusal {
    Shape sample;
    const char* layers;
    const char* message;
  };
  const Refusal table[] = {
      {{28, 28},
       R"([{"type": "conv2d", "out": 6, "kernel": 5}])",
       "put {\"type\": \"reshape\", \"shape\": [1,28,28]} before this layer"},
      {{28, 28}, R"([{"type": "max_pool2d", "kernel": 2}])", "[B,28,28] without a channel"},
      {{64}, R"([{"type": "conv2d", "out": 6, "kernel": 5}])", "expected an input [N,C,H,W]"},
      {{3, 8, 8},
       R"([{"type": "conv2d", "out": 6, "kernel": 5, "groups": 2}])",
       "groups: 2 must divide the 3 input channels and the 6 output channels"},
      {{3, 8, 8},
       R"([{"type": "conv2d", "out": 6, "kernel": [11, 3], "padding": 1}])",
       "the kernel [11,3] is larger than the padded input [10,10] of input [B,3,8,8]"},
      {{3, 8, 8}, R"([{"type": "conv2d", "out": 6, "kernel": [3, 3, 3]}])", "one integer or two"},
      {{3, 8, 8}, R"([{"type": "conv2d", "out": 6, "kernel": 0}])", "kernel: expected at least 1"},
      {{3, 8, 8}, R"([{"type": "conv2d", "out": 6, "kernel": []}])", "kernel: expected a size"},
      {{3, 8, 8}, R"([{"type": "conv2d", "out": 6, "kernel": "3"}])", "a list of integers"},
      {{3, 8, 8},
       R"([{"type": "max_pool2d", "kernel": 2, "padding": 2}])",
       "padding 2 is more than half of the kernel 2"},
      {{3, 8, 8}, R"([{"type": "avg_pool2d", "kernel": 9}])", "larger than the padded input [8,8]"},
      {{3, 8, 8},
       R"([{"type": "conv_transpose2d", "out": 2, "kernel": 3, "output_padding": 1}])",
       "output_padding [1,1] must be smaller than the stride [1,1]"},
      {{3, 8, 8},
       R"([{"type": "reshape", "shape": [3, 65]}])",
       "a sample has 192 elements, the new shape 195"}};
  for (const Refusal& r : table) {
    const std::string message = traced(r.sample, r.layers);
    EXPECT_NE(message.find(r.message), std::string::npos) << r.layers << "\n" << message;
    EXPECT_EQ(message.find("model.layers[0]"), 0u) << message;
  }
}

}  // namespace
}  // namespace testing
}  // namespace netcl
