// Attention, indexing and batched products, and the layers made of them, against values and
// gradients that PyTorch computed (attention_ops.json, made by attention_ops.py); what PyTorch
// refuses or leaves open: indices out of range, rows without keys, errors of the layers.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "core/autograd/tape.h"
#include "core/base/error.h"
#include "tests/pytorch/harness.h"

namespace netcl {
namespace testing {
namespace {

constexpr double kTolerance = 1e-4;  // relative to the largest element

const ordered_json& reference() {
  static const ordered_json json = read_reference("attention_ops");
  return json;
}

void expect_near(const Tensor& got, const ordered_json& want, const std::string& what) {
  testing::expect_near(download(got), want, kTolerance, what);
}

TEST(AttentionOpsTest, OpsEqualPyTorch) {
  for (const ordered_json& c : reference().at("ops")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    Tape tape(shared_device().eager());
    std::vector<ValueId> in, wanted;
    size_t floats = 0;
    for (const ordered_json& input : c.at("inputs")) {
      const HostTensor t = host_tensor(input);
      in.push_back(tape.watch(upload(t)));
      // The file holds one gradient for each of the first float inputs.
      if (is_float(t.desc.dtype) && floats++ < c.at("gradients").size())
        wanted.push_back(in.back());
    }
    const ValueId y = tape.apply(c.at("op"), in, attrs_of(c.at("attrs"))).at(0);
    expect_near(tape.tensor(y), c.at("output"), "output");
    const ValueId seed = tape.watch(upload(host_tensor(c.at("seed"))));
    const auto grads = tape.backward(y, wanted, seed);
    ASSERT_EQ(grads.size(), c.at("gradients").size());
    for (size_t i = 0; i < grads.size(); ++i) {
      ASSERT_TRUE(grads[i].has_value());
      expect_near(*grads[i], c.at("gradients")[i], "gradient " + std::to_string(i));
    }
  }
}

// A layer on a tape; slots hold what `values` says, or zeros.
TracedLayer trace(Tape& tape, const ordered_json& config, ValueId x,
                  const std::map<std::string, HostTensor>& values = {}) {
  return TracedLayer(tape, config, x, [&](const std::string& name, const Slot& slot) {
    const auto given = values.find(name);
    const auto count = static_cast<size_t>(slot.desc.shape.num_elements());
    const HostTensor value =
        given != values.end() ? given->second : HostTensor{slot.desc, std::vector<double>(count)};
    EXPECT_EQ(slot.desc, value.desc) << name;
    return tape.watch(upload(value));
  });
}

TEST(AttentionOpsTest, LayersEqualPyTorch) {
  for (const ordered_json& c : reference().at("layers")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    std::map<std::string, HostTensor> slots;
    for (const auto& [name, value] : c.at("slots").items()) slots[name] = host_tensor(value);
    Tape tape(shared_device().eager());
    const ValueId x = tape.watch(upload(host_tensor(c.at("input"))));
    const TracedLayer layer = trace(tape, c.at("config"), x, slots);
    expect_near(tape.tensor(layer.y), c.at("output"), "output");
    std::vector<ValueId> wanted = {x};
    ASSERT_EQ(layer.slots.size(), slots.size());
    std::vector<std::string> names;
    for (const auto& [name, id] : layer.slots) {
      wanted.push_back(id);
      names.push_back(name);
    }
    const ValueId seed = tape.watch(upload(host_tensor(c.at("seed"))));
    const auto grads = tape.backward(layer.y, wanted, seed);
    if (!c.at("input_gradient").is_null()) {
      expect_near(*grads[0], c.at("input_gradient"), "gradient of the input");
    }
    for (size_t i = 0; i < names.size(); ++i) {
      ASSERT_TRUE(grads[i + 1].has_value()) << names[i];
      expect_near(*grads[i + 1], c.at("slot_gradients").at(names[i]), "gradient of " + names[i]);
    }
  }
}

TEST(AttentionOpsTest, ARowWithoutKeysGivesZero) {
  Tape tape(shared_device().eager());
  const HostTensor x{{DType::kF32, {1, 1, 2, 2}}, {1, 2, 3, 4}};
  const double forbidden = -std::numeric_limits<double>::infinity();
  const HostTensor mask{{DType::kF32, {2, 2}}, {0, 0, forbidden, forbidden}};
  std::vector<ValueId> in;
  for (int i = 0; i < 3; ++i) in.push_back(tape.watch(upload(x)));
  in.push_back(tape.watch(upload(mask)));
  const auto y = tape.apply("scaled_dot_product_attention", in, {});
  const std::vector<double> out = download(tape.tensor(y[0])).data;
  EXPECT_GT(out[0], 1);
  EXPECT_EQ(out[2], 0);
  EXPECT_EQ(out[3], 0);
  EXPECT_EQ(download(tape.tensor(y[1])).data[1], 0);
  const auto grads = tape.backward(y[0], {in[0], in[1], in[2]});
  for (const auto& grad : grads) {
    for (const double g : download(*grad).data) EXPECT_TRUE(std::isfinite(g));
  }
  EXPECT_EQ(download(*grads[0]).data[2], 0);
}

TEST(AttentionOpsTest, NotANumberPassesThroughAttention) {
  Tape tape(shared_device().eager());
  const HostTensor bad{{DType::kF32, {1, 1, 1, 2}}, {std::nan(""), 2}};
  const ValueId x = tape.watch(upload(bad));
  const auto y = tape.apply("scaled_dot_product_attention", {x, x, x}, {});
  EXPECT_TRUE(std::isnan(download(tape.tensor(y[0])).data[1]));
}

TEST(AttentionOpsTest, IndicesOutOfRangeAreSeen) {
  Tape tape(shared_device().eager());
  const ValueId index = tape.watch(upload({{DType::kI32, {4}}, {-1, 0, 2, 3}}));
  const ValueId table = tape.watch(upload({{DType::kF32, {3, 1}}, {5, 6, 7}}));
  const auto is_nan = [&](ValueId y) {
    std::vector<bool> out;
    for (const double v : download(tape.tensor(y)).data) out.push_back(std::isnan(v));
    return out;
  };
  const std::vector<bool> wanted = {true, false, false, true};
  const ValueId y = tape.call("embedding", {index, table});
  EXPECT_EQ(is_nan(y), wanted);
  EXPECT_EQ(is_nan(tape.call("index_select", {table, index}, {{"axis", int64_t{0}}})), wanted);
  const ValueId flat = tape.call("reshape", {table}, {{"shape", Shape{3}}});
  EXPECT_EQ(is_nan(tape.call("gather", {flat, index}, {{"axis", int64_t{0}}})), wanted);
  EXPECT_EQ(is_nan(tape.call("one_hot", {index}, {{"classes", int64_t{3}}})),
            (std::vector<bool>{true, true, true, false, false, false, false, false, false, true,
                               true, true}));
  EXPECT_EQ(download(*tape.backward(y, {table})[0]).data, (std::vector<double>{1, 0, 1}));
}

TEST(AttentionOpsTest, InitialValuesArePyTorchs) {
  Tape tape(shared_device().eager());
  const ValueId x = tape.watch(upload({{DType::kF32, {1, 2, 8}}, std::vector<double>(16)}));
  const TracedLayer layer = trace(tape, {{"type", "multihead_attention"}, {"heads", 2}}, x);
  std::map<std::string, Slot> slots;
  for (const Slot& slot : layer.declared) slots[slot.name] = slot;
  const Slot& in = slots.at("layers.0.in_proj_weight");
  EXPECT_EQ(in.init, NETCL_INIT_UNIFORM);
  EXPECT_NEAR(in.b, std::sqrt(6.0 / 32), 1e-12);
  EXPECT_EQ(slots.at("layers.0.in_proj_bias").init, NETCL_INIT_ZEROS);
  EXPECT_NEAR(slots.at("layers.0.out_proj.weight").b, 1 / std::sqrt(8.0), 1e-12);
  EXPECT_EQ(slots.at("layers.0.out_proj.bias").init, NETCL_INIT_ZEROS);
}

std::string error_of(const ordered_json& config, const HostTensor& input) {
  Tape tape(shared_device().eager());
  try {
    trace(tape, config, tape.watch(upload(input)));
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    return e.message();
  }
  return "no error";
}

TEST(AttentionOpsTest, ErrorsSayWhatAndBothShapes) {
  const HostTensor sequence{{DType::kF32, {2, 5, 6}}, std::vector<double>(60)};
  const HostTensor flat{{DType::kF32, {2, 6}}, std::vector<double>(12)};
  const ordered_json wide = {{"type", "linear"}, {"out", 4}};
  const auto expect = [](const std::string& message, const std::string& words) {
    EXPECT_NE(message.find(words), std::string::npos) << message;
    EXPECT_NE(message.find("model.layers[0]"), std::string::npos) << message;
  };
  expect(error_of({{"type", "multihead_attention"}, {"heads", 4}}, sequence),
         "4 heads do not divide the 6 features");
  expect(error_of({{"type", "position_embedding"}, {"length", 4}}, sequence),
         "longer than the table of 4 positions");
  expect(error_of({{"type", "embedding"}, {"vocabulary", 4}, {"features", 3}}, flat),
         "expected i32 tokens");
  expect(error_of({{"type", "class_token"}}, flat), "expected sequences [B,T,D], found [2,6]");
  expect(error_of({{"type", "select"}, {"index", 5}}, sequence), "index 5 lies outside of axis 1");
  expect(error_of({{"type", "select"}, {"axis", 0}}, sequence), "is the batch");
  expect(error_of({{"type", "residual"}, {"layers", ordered_json::array({wide})}}, flat),
         "the layers give [2,4] and the shortcut [2,6]");
  expect(error_of({{"type", "sum"}, {"layers", ordered_json::array({{{"type", "tanh"}}, wide})}},
                  flat),
         "branch 0 gives [2,6] and branch 1 [2,4]");
  const ordered_json pair = ordered_json::array({{{"type", "tanh"}}, {{"type", "flatten"}}});
  expect(error_of({{"type", "concat"}, {"layers", pair}}, sequence),
         "branch 0 gives [2,5,6] and branch 1 [2,30]");
}

}  // namespace
}  // namespace testing
}  // namespace netcl
