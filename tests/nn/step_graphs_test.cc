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
  EXPECT_EQ(names(g.update.externals()), (std::set<std::string>{"parameters", "gradients", "m", "v",
                                                                "hyper", "blocks", "divisor"}));
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
  EXPECT_NE(error_of(make_spec(R"([{"type": "act"}])")).find("no layer has parameters"),
            std::string::npos);
  EXPECT_NE(error_of(make_spec(R"([{"type": "dense", "out": 1}])")).find("at least 2 classes"),
            std::string::npos);
  StepSpec spec = make_spec(kModel);
  spec.input = Shape{4, 2};
  EXPECT_NE(error_of(spec), "no error");
  spec = make_spec(kModel);
  spec.loss.type = "cross_entrop";
  EXPECT_NE(error_of(spec).find("did you mean \"cross_entropy\""), std::string::npos);
  spec = make_spec(kModel);
  spec.metrics = {"acuracy"};
  EXPECT_NE(error_of(spec).find("did you mean \"accuracy\""), std::string::npos);
}

TEST(StepGraphsTest, EvaluationHasSumsThatTrainingLacks) {
  FakeLayers layers;
  StepSpec spec = make_spec(kModel);
  spec.metrics = {"accuracy", "top2", "f1", "confusion", "perplexity"};
  const StepGraphs g = build_step_graphs(spec, layers);
  EXPECT_EQ(names(g.eval.outputs()),
            (std::set<std::string>{"loss", "denominator", "correct", "top2", "confusion"}));
  EXPECT_EQ(g.sums, (std::vector<std::string>{"loss", "denominator", "correct"}));
  EXPECT_EQ(g.eval_sums.find("confusion").desc.shape, (Shape{3, 3}));
  EXPECT_EQ(names(g.forward.outputs()), (std::set<std::string>{"output"}));
  EXPECT_EQ(names(g.forward.externals()).count("labels"), 0u);
  ASSERT_EQ(g.constants.entries().size(), 1u);
  EXPECT_EQ(g.constants.entries()[0].desc.shape, (Shape{1, 3}));
}

TEST(StepGraphsTest, OutputsAndLabelsMustGoTogether) {
  StepSpec spec = make_spec(kModel);
  spec.label_shape = Shape{4};
  EXPECT_NE(error_of(spec).find("has scores for [B] labels, the data set gives [B,4]"),
            std::string::npos)
      << error_of(spec);
  spec.label_shape = {};
  spec.label_dtype = DType::kF32;
  EXPECT_NE(error_of(spec).find("needs classes as labels"), std::string::npos) << error_of(spec);
  spec.loss.type = "mse";
  spec.metrics = {"mse"};
  EXPECT_NE(error_of(spec).find("the output is [B,3], the data set's targets are [B]"),
            std::string::npos)
      << error_of(spec);
  spec.metrics = {"accuracy"};
  spec.label_shape = Shape{3};
  EXPECT_NE(error_of(spec).find("the metric accuracy does not go with the loss mse"),
            std::string::npos)
      << error_of(spec);
  spec = make_spec(kModel);
  spec.loss.class_weights = {1, 2};
  spec.locate = [](const std::string& path) { return path == "loss.class_weights" ? "c:7" : ""; };
  EXPECT_NE(error_of(spec).find("c:7: loss.class_weights: 2 class weights, but the model has 3"),
            std::string::npos)
      << error_of(spec);
  spec = make_spec(kModel);
  spec.metrics = {"top9"};
  EXPECT_NE(error_of(spec).find("needs at least 9 classes"), std::string::npos);
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

TEST(StepGraphsTest, GroupsFrozenSlotsAndTheAverage) {
  FakeLayers layers;
  StepSpec spec = make_spec(kModel);
  spec.optimizer.weight_decay = 0.1;
  spec.optimizer.no_decay_on_bias_and_norms = true;
  spec.optimizer.groups = {{"layers.0.*", std::nullopt, 1, true}, {"*.weight", 0.5, 2}};
  spec.optimizer.clip_norm = 1;
  spec.optimizer.ema_decay = 0.99;
  const StepGraphs g = build_step_graphs(spec, layers);
  EXPECT_EQ(g.plan.num_group("layers.0.weight"), -1);
  EXPECT_EQ(g.plan.num_group("layers.0.bias"), -1);
  const auto group = [&](const char* slot) {
    return g.plan.groups.at(static_cast<size_t>(g.plan.num_group(slot)));
  };
  EXPECT_EQ(group("layers.3.weight").weight_decay, 0.5);
  EXPECT_EQ(group("layers.3.weight").lr_scale, 2);
  EXPECT_EQ(group("layers.3.bias").weight_decay, 0);
  EXPECT_EQ(static_cast<int64_t>(g.plan.blocks.size()) * 128, g.parameters.num_floats());
  EXPECT_EQ(g.plan.states, (std::vector<std::string>{"m", "v", "ema"}));
  EXPECT_EQ(names(g.update.outputs()),
            (std::set<std::string>{"parameters", "m", "v", "ema", "grad_norm"}));
  EXPECT_EQ(g.update.nodes().size(), 3u);
}

TEST(StepGraphsTest, GroupsThatMatchNothingAreRefused) {
  FakeLayers layers;
  StepSpec spec = make_spec(kModel);
  spec.optimizer.groups = {{"layers.3.weigth"}};
  try {
    build_step_graphs(spec, layers);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("did you mean \"layers.3.weight\"?"), std::string::npos)
        << e.message();
    EXPECT_NE(e.message().find("layers.0.bias"), std::string::npos) << e.message();
  }
  spec.optimizer.groups = {{"*", std::nullopt, 1, true}};
  EXPECT_THROW(build_step_graphs(spec, layers), Error);
}

}  // namespace
}  // namespace testing
}  // namespace netcl
