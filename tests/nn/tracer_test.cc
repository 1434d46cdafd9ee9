// The walk through a model's configuration: what it accepts, how it names slots, and that every
// refusal says where.
#include "core/nn/tracer.h"

#include <gtest/gtest.h>

#include "core/graph/graph.h"
#include "tests/nn/fake_layers.h"

namespace netcl {
namespace testing {
namespace {
using nlohmann::ordered_json;

struct Traced {
  Graph graph;
  std::vector<Slot> slots;
  ValueId out = 0;
  std::vector<SlotUpdate> updates;
  std::vector<NodeRange> recompute;
};

void trace_with(FakeLayers& layers, const std::string& json, Traced& t, bool training,
                const std::string& place = "") {
  const ordered_json config = ordered_json::parse(json);
  const ValueId x = t.graph.external("x", {DType::kF32, {-1, 8}});
  std::map<std::string, ValueId> values;
  Tracer tracer(
      t.graph, layers, t.slots,
      [&](const Slot& slot) {
        const auto known = values.find(slot.name);
        if (known != values.end()) return known->second;
        return values[slot.name] = t.graph.external(slot.name, slot.desc);
      },
      [&] {
        return t.graph.external("random", {DType::kI32, {8}});
      },
      {training, [place](const std::string&) { return place; }});
  t.out = tracer.sequence(config, "model.layers", x);
  t.updates = tracer.updates();
  t.recompute = tracer.recompute();
}

void trace(const std::string& json, Traced& t, bool training = true,
           const std::string& place = "") {
  FakeLayers layers;
  trace_with(layers, json, t, training, place);
}

std::string error_of(const std::string& json, const std::string& place = "") {
  Traced t;
  try {
    trace(json, t, true, place);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage) << e.message();
    return e.message();
  }
  return "no error";
}

TEST(TracerTest, NamesSlotsAfterTheirPlace) {
  Traced t;
  trace(R"([{"type": "dense", "out": 5}, {"type": "act"},
            {"type": "chain", "layers": [{"type": "act", "fn": "tanh"},
                                         {"type": "dense", "out": 3, "bias": false}]}])",
        t);
  ASSERT_EQ(t.slots.size(), 3u);
  EXPECT_EQ(t.slots[0].name, "layers.0.weight");
  EXPECT_EQ(t.slots[0].desc.str(), "f32[8,5]");
  EXPECT_EQ(t.slots[0].init, static_cast<uint32_t>(NETCL_INIT_NORMAL));
  EXPECT_EQ(t.slots[1].name, "layers.0.bias");
  EXPECT_EQ(t.slots[2].name, "layers.2.layers.1.weight");
  EXPECT_EQ(t.graph.desc(t.out).shape, (Shape{-1, 3}));
}

TEST(TracerTest, EvaluationSharesTheSlots) {
  const std::string json = R"([{"type": "dense", "out": 5}, {"type": "drop"}])";
  Traced train, eval;
  trace(json, train);
  eval.slots = train.slots;
  trace(json, eval, false);
  EXPECT_EQ(eval.slots.size(), train.slots.size());
  EXPECT_EQ(train.graph.nodes().size(), 2u);
  EXPECT_EQ(eval.graph.nodes().size(), 1u);  // no dropout
}

TEST(TracerTest, DropoutLayersHaveStreamsOfTheirOwn) {
  Traced t;
  FakeLayers layers;
  const ordered_json config = ordered_json::parse(R"([{"type": "drop"}, {"type": "drop"}])");
  const ValueId x = t.graph.external("x", {DType::kF32, {-1, 8}});
  const ValueId random = t.graph.external("random", {DType::kI32, {8}});
  Tracer tracer(
      t.graph, layers, t.slots, [](const Slot&) { return ValueId{0}; }, [&] { return random; }, {});
  tracer.sequence(config, "model.layers", x);
  EXPECT_EQ(t.graph.nodes()[0].attrs.integer("stream"), 0);
  EXPECT_EQ(t.graph.nodes()[1].attrs.integer("stream"), 1);
}

TEST(TracerTest, RefusalsNameThePath) {
  const std::pair<const char*, const char*> table[] = {
      {R"([])", "model.layers: expected a non-empty list of layers, found array []"},
      {R"({"type": "dense"})", "model.layers: expected a non-empty list of layers"},
      {R"([3])", "model.layers[0]: expected a layer, an object with \"type\", found number 3"},
      {R"([{"out": 3}])", "model.layers[0]: a layer needs \"type\""},
      {R"([{"type": "act"}, {"type": "dens", "out": 3}])",
       "model.layers[1] (dens, input f32[B,8]): unknown layer type \"dens\"; did you mean "
       "\"dense\"?"},
      {R"([{"type": "dense", "outt": 3}])",
       "model.layers[0].outt: unknown key of layer \"dense\"; did you mean \"out\"?"},
      {R"([{"type": "dense"}])",
       "model.layers[0].out: layer \"dense\" needs this key: an integer, width of the output"},
      {R"([{"type": "dense", "out": "3"}])",
       "model.layers[0].out: expected an integer, found string \"3\""},
      {R"([{"type": "dense", "out": 2.5}])", "expected an integer, found number 2.5"},
      {R"([{"type": "dense", "out": 0}])", "expected an integer from 1 to 1024, found 0"},
      {R"([{"type": "dense", "out": 2000}])", "expected an integer from 1 to 1024, found 2000"},
      {R"([{"type": "dense", "out": 3, "bias": 1}])",
       "model.layers[0].bias: expected true or false, found number 1"},
      {R"([{"type": "drop", "p": 0.95}])", "model.layers[0].p: expected a number from 0 to 0.9"},
      {R"([{"type": "act", "fn": "tan"}])",
       "model.layers[0].fn: expected one of relu, tanh, found \"tan\"; did you mean \"tanh\"?"},
      {R"([{"type": "act", "fn": 3}])", "model.layers[0].fn: expected text, found number 3"},
      {R"([{"type": "scale_by", "factors": [1, "2"]}])", "expected a list of integers"},
      {R"([{"type": "chain"}])", "model.layers[0].layers: expected a list of layers"},
      {R"([{"type": "chain", "layers": [{"type": "act"}, {"type": "dense", "uot": 3}]}])",
       "model.layers[0].layers[1].uot: unknown key"},
  };
  for (const auto& [json, expected] : table)
    EXPECT_NE(error_of(json).find(expected), std::string::npos) << json << "\n" << error_of(json);
}

TEST(TracerTest, AnOpsRefusalNamesTheLayer) {
  FakeLayers layers;
  layers.add("bad", {}, [](Tracer& t, const LayerArgs&, ValueId x) {
    return t.recorder().call("matmul", {x, x});
  });
  Traced t;
  const ValueId x = t.graph.external("x", {DType::kF32, {-1, 8}});
  Tracer tracer(
      t.graph, layers, t.slots, [](const Slot&) { return ValueId{0}; }, [] { return ValueId{0}; },
      {});
  try {
    tracer.sequence(ordered_json::parse(R"([{"type": "act"}, {"type": "bad"}])"), "model.layers",
                    x);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message().find("model.layers[1] (bad, input f32[B,8]): matmul("), 0u)
        << e.message();
    EXPECT_NE(e.message().find("inner dimensions differ"), std::string::npos) << e.message();
  }
}

TEST(TracerTest, FileAndLineComeFirst) {
  const char* const place = "digits.json:12";
  EXPECT_EQ(error_of(R"([{"type": "dense", "out": 0}])", place).find("digits.json:12: model."), 0u);
  EXPECT_EQ(error_of(R"([{"type": "nothing"}])", place).find("digits.json:12: model."), 0u);
}

// A layer with a statistic that moves towards the batch's mean.
void add_follower(FakeLayers& layers) {
  layers.add("follow", {}, [](Tracer& t, const LayerArgs&, ValueId x) {
    const ValueId mean = t.slot(
        {"mean", {DType::kF32, {8}}, NETCL_INIT_ZEROS, 0, 0, true, NETCL_MERGE_WEIGHTED_MEAN});
    const ValueId now =
        t.recorder().call("mean", {x}, {{"axes", std::vector<int64_t>{0}}, {"keep", int64_t{0}}});
    t.update_slot(mean, now);
    return t.recorder().call("sub", {x, mean});
  });
  layers.add("twice", {}, [](Tracer& t, const LayerArgs&, ValueId x) {
    const ordered_json dense = {{"type", "dense"}, {"out", 8}};
    x = t.sublayer("first", dense, {x})[0];
    return t.sublayer("second", {{"type", "dense"}, {"out", 3}, {"bias", false}}, {x})[0];
  });
}

TEST(TracerTest, StatisticsAndTheirNextValues) {
  for (const bool training : {true, false}) {
    Traced t;
    FakeLayers layers;
    add_follower(layers);
    trace_with(layers, R"([{"type": "follow"}, {"type": "dense", "out": 3}])", t, training);
    ASSERT_EQ(t.slots.size(), 3u);
    EXPECT_EQ(t.slots[0].name, "layers.0.mean");
    EXPECT_TRUE(t.slots[0].statistic);
    EXPECT_FALSE(t.slots[1].statistic);
    ASSERT_EQ(t.updates.size(), training ? 1u : 0u);
    for (const SlotUpdate& update : t.updates) EXPECT_EQ(update.slot, "layers.0.mean");
  }
}

TEST(TracerTest, WrongUpdatesAreRefused) {
  FakeLayers layers;
  layers.add("wrong", {{"how", NETCL_ATTR_STR, std::nullopt, true, 0, 0, {}, ""}},
             [](Tracer& t, const LayerArgs& a, ValueId x) {
               const ValueId mean = t.slot({"mean", {DType::kF32, {8}}, 0, 0, 0, true});
               const std::string how = a.values.text("how");
               if (how == "shape") t.update_slot(mean, x);
               if (how == "value") t.update_slot(x, mean);
               for (int i = 0; i < 2; ++i) t.update_slot(mean, mean);
               return x;
             });
  for (const auto& [how, message] : {std::pair("shape", "its next value f32[B,8]"),
                                     std::pair("value", "stands for no statistic"),
                                     std::pair("twice", "has a next value already")}) {
    Traced t;
    try {
      trace_with(layers, std::string(R"([{"type": "wrong", "how": ")") + how + "\"}]", t, true);
      ADD_FAILURE() << how;
    } catch (const Error& e) {
      EXPECT_NE(e.message().find(message), std::string::npos) << e.message();
    }
  }
}

TEST(TracerTest, PartsOfALayerCarryItsName) {
  Traced t;
  FakeLayers layers;
  add_follower(layers);
  trace_with(layers, R"([{"type": "act"}, {"type": "twice"}])", t, true);
  ASSERT_EQ(t.slots.size(), 3u);
  EXPECT_EQ(t.slots[0].name, "layers.1.first.weight");
  EXPECT_EQ(t.slots[1].name, "layers.1.first.bias");
  EXPECT_EQ(t.slots[2].name, "layers.1.second.weight");
}

TEST(TracerTest, RecomputeMarksTheOutermostLayers) {
  Traced t;
  FakeLayers layers;
  trace_with(layers,
             R"([{"type": "act"},
                 {"type": "chain", "recompute": true,
                  "layers": [{"type": "act", "recompute": true}, {"type": "act"}]},
                 {"type": "act", "recompute": true}, {"type": "act", "recompute": false}])",
             t, true);
  ASSERT_EQ(t.recompute.size(), 2u);
  EXPECT_EQ(t.recompute[0].begin, 1u);
  EXPECT_EQ(t.recompute[0].end, 3u);
  EXPECT_EQ(t.recompute[1].begin, 3u);
  EXPECT_EQ(t.recompute[1].end, 4u);
  EXPECT_NE(error_of(R"([{"type": "act", "recompute": 1}])").find("layers[0].recompute"),
            std::string::npos);
}

}  // namespace
}  // namespace testing
}  // namespace netcl
