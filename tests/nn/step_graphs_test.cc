// The three graphs of a run: what they are called, what they share, and what a model must be.
#include "core/nn/step_graphs.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/nn/fake_layers.h"

namespace netcl {
namespace testing {
namespace {

StepSpec make_spec(const std::string& layers) {
  StepSpec spec;
  spec.input = Shape{8};
  spec.layers = nlohmann::ordered_json::parse(layers);
  spec.optimizer = Optimizer::adamw();
  return spec;
}

constexpr const char* kModel = R"([{"type": "dense", "out": 16}, {"type": "act"},
                                   {"type": "drop", "p": 0.25}, {"type": "dense", "out": 3}])";

std::set<std::string> names(const std::vector<Graph::Place>& places) {
  std::set<std::string> out;
  for (const Graph::Place& p : places) out.insert(p.name);
  return out;
}

TEST(StepGraphsTest, ExternalsAndOutputs) {
  FakeLayers layers;
  const StepGraphs g = build_step_graphs(make_spec(kModel), layers);
  const std::set<std::string> slots = {"layers.0.weight", "layers.0.bias", "layers.3.weight",
                                       "layers.3.bias"};
  std::set<std::string> eval_in = slots, train_in = slots;
  eval_in.insert({"x", "labels"});
  train_in.insert({"x", "labels", "random"});
  EXPECT_EQ(names(g.train.externals()), train_in);
  EXPECT_EQ(names(g.eval.externals()), eval_in);
  EXPECT_EQ(names(g.eval.outputs()), (std::set<std::string>{"loss", "denominator", "correct"}));
  std::set<std::string> train_out = names(g.eval.outputs());
  for (const std::string& slot : slots) train_out.insert("grad/" + slot);
  EXPECT_EQ(names(g.train.outputs()), train_out);
  EXPECT_EQ(names(g.update.externals()),
            (std::set<std::string>{"parameters", "gradients", "m", "v", "hyper", "divisor"}));
  EXPECT_EQ(names(g.update.outputs()), (std::set<std::string>{"parameters", "m", "v"}));
  EXPECT_EQ(g.update.nodes().size(), 1u);
}

TEST(StepGraphsTest, TheActivationIsFused) {
  FakeLayers layers;
  const StepGraphs g = build_step_graphs(make_spec(kModel), layers);
  for (const Graph* graph : {&g.train, &g.eval}) {
    EXPECT_NE(graph->str().find("activation=relu"), std::string::npos) << graph->str();
    EXPECT_EQ(graph->str().find(" relu("), std::string::npos) << graph->str();
  }
  EXPECT_EQ(g.eval.str().find("dropout"), std::string::npos);
}

TEST(StepGraphsTest, ArenasHoldEveryParameterInBackwardsOrder) {
  FakeLayers layers;
  const StepGraphs g = build_step_graphs(make_spec(kModel), layers);
  EXPECT_EQ(g.num_parameters(), 8 * 16 + 16 + 16 * 3 + 3);
  EXPECT_EQ(g.num_outputs, 3);
  EXPECT_EQ(g.sums, (std::vector<std::string>{"loss", "denominator", "correct"}));
  EXPECT_EQ(g.sums_floats, 3 * ArenaLayout::kAlignFloats);
  EXPECT_EQ(g.gradients.num_floats(), g.sums_floats + g.parameters.num_floats());
  EXPECT_EQ(g.parameters.entries().front().name, "layers.3.bias");
  for (const Slot& slot : g.slots) {
    EXPECT_EQ(g.gradients.find("grad/" + slot.name).offset,
              g.sums_floats + g.parameters.find(slot.name).offset);
  }
}

TEST(StepGraphsTest, AnUnusedParameterGetsAZeroGradient) {
  FakeLayers layers;
  layers.add("ignores", {}, [](Tracer& t, const LayerArgs&, ValueId x) {
    t.slot({"spare", {DType::kF32, Shape{2}}, NETCL_INIT_ZEROS, 0, 0});
    return x;
  });
  const StepGraphs g =
      build_step_graphs(make_spec(R"([{"type": "ignores"}, {"type": "dense", "out": 3}])"), layers);
  EXPECT_NE(g.train.str().find("full()"), std::string::npos) << g.train.str();
}

std::string error_of(const StepSpec& spec, FakeLayers layers = {}) {
  try {
    build_step_graphs(spec, layers);
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}

TEST(StepGraphsTest, RefusesWhatCannotBeTrained) {
  EXPECT_NE(error_of(make_spec(R"([{"type": "act"}])")).find("no parameters to train"),
            std::string::npos);
  EXPECT_NE(error_of(make_spec(R"([{"type": "dense", "out": 1}])")).find("at least 2 classes"),
            std::string::npos);
  StepSpec spec = make_spec(kModel);
  spec.input = Shape{4, 2};
  EXPECT_NE(error_of(spec), "no error");
  spec = make_spec(kModel);
  spec.loss = "cross_entrop";
  EXPECT_NE(error_of(spec).find("did you mean \"cross_entropy\""), std::string::npos);
  spec = make_spec(kModel);
  spec.metrics = {"acuracy"};
  EXPECT_NE(error_of(spec).find("did you mean \"accuracy\""), std::string::npos);
}

TEST(StepGraphsTest, ASlotOfTheEvaluationAloneIsTheLayersFault) {
  FakeLayers layers;
  layers.add("sly", {}, [](Tracer& t, const LayerArgs&, ValueId x) {
    if (!t.training()) t.slot({"late", {DType::kF32, Shape{2}}, NETCL_INIT_ZEROS, 0, 0});
    return x;
  });
  const std::string message =
      error_of(make_spec(R"([{"type": "dense", "out": 3}, {"type": "sly"}])"), layers);
  EXPECT_NE(message.find("layers.1.late in evaluation only"), std::string::npos) << message;
}

}  // namespace
}  // namespace testing
}  // namespace netcl
