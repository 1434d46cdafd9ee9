// Who computes an op: pins, reasons, and what is said when nobody can.
#include "core/runtime/kernel_choice.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/ops/op.h"
#include "core/runtime/own_kernels.h"
#include "tests/ops/device_fixture.h"
#include "tests/runtime/plugin_folder.h"

namespace netcl {
namespace testing {
namespace {

class KernelChoiceTest : public ::testing::Test {
 protected:
  KernelQuestion question() const { return {row, in, out, attrs}; }
  std::string error_of(KernelChoice* choice) {
    try {
      choice->recipe(shared_device().device(), question());
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kPlugin);
      return e.message();
    }
    return "no error";
  }

  const OpRow& row = find_op("matmul");
  std::vector<TensorDesc> in = {{DType::kF32, {33, 17}}, {DType::kF32, {17, 21}}};
  std::vector<TensorDesc> out = {{DType::kF32, {33, 21}}};
  Attrs attrs = complete_attrs(row, {});
};

TEST_F(KernelChoiceTest, AnswersAreFrozenAndListed) {
  DeviceFixture& f = shared_device();
  KernelChoice choice(f.plugins(), {});
  const auto first = choice.recipe(f.device(), question());
  EXPECT_EQ(choice.recipe(f.device(), question()), first);
  EXPECT_EQ(choice.chosen(),
            std::vector<std::string>{"matmul: " + first->plugin + "/" + first->variant});
}

TEST_F(KernelChoiceTest, EveryVariantCanBePinned) {
  DeviceFixture& f = shared_device();
  const std::vector<KernelPin> variants = f.variants(question());
  EXPECT_GE(variants.size(), 2u);
  for (const KernelPin& pin : variants) {
    KernelChoice choice = KernelChoice(f.plugins(), {{"matmul", pin}});
    const auto recipe = choice.recipe(f.device(), question());
    EXPECT_EQ(recipe->plugin, pin.plugin);
    EXPECT_EQ(recipe->variant, pin.variant);
  }
}

TEST_F(KernelChoiceTest, WhyNamesTheChosen) {
  DeviceFixture& f = shared_device();
  KernelChoice choice(f.plugins(), {});
  const auto verdicts = choice.why(f.device(), question());
  ASSERT_FALSE(verdicts.empty());
  EXPECT_EQ(verdicts[0].verdict, "chosen");
  EXPECT_EQ(verdicts[0].variant, choice.recipe(f.device(), question())->variant);
  EXPECT_NE(verdicts[0].reason.find("specificity"), std::string::npos);
}

TEST_F(KernelChoiceTest, APinThatCannotBeKeptIsAnError) {
  KernelChoice absent_variant(shared_device().plugins(), {{"matmul", {"generic", "absent"}}});
  EXPECT_NE(error_of(&absent_variant).find("no variant \"absent\""), std::string::npos);
  KernelChoice absent_plugin(shared_device().plugins(), {{"matmul", {"absent", ""}}});
  EXPECT_NE(error_of(&absent_plugin).find("generic: the op is pinned to absent"),
            std::string::npos);
  const auto verdicts = absent_plugin.why(shared_device().device(), question());
  ASSERT_FALSE(verdicts.empty());
  for (const auto& verdict : verdicts) EXPECT_EQ(verdict.verdict, "declined") << verdict.plugin;
}

TEST_F(KernelChoiceTest, WhatIsPinnedIsItsOwn) {
  const DeviceInfo& cpu = shared_device().device().info();
  const auto own =
      ops_with_own_kernels(shared_device().plugins(), {cpu}, {{"tanh", {"generic", ""}}});
  EXPECT_EQ(own.count("tanh"), 1u);           // pinned
  EXPECT_EQ(own.count("exp"), 0u);            // nobody but who serves chains, too
  EXPECT_EQ(own.count("cross_entropy"), 0u);  // the set for processors has both at once, too
  DeviceInfo gpu = cpu;
  gpu.type = "gpu";
  EXPECT_EQ(ops_with_own_kernels(shared_device().plugins(), {gpu, cpu}, {}).size(), 0u);
}

TEST_F(KernelChoiceTest, WithoutAKernelSetTheMessageSaysWhatToDo) {
  PluginOptions options;
  options.only = {"nothing"};
  PluginHost none(options, {shared_device().device().info()}, Logger());
  KernelChoice choice(none, {});
  const std::string message = error_of(&choice);
  EXPECT_NE(message.find("no kernel set computes matmul(f32[33,17], f32[17,21]) on " +
                         shared_device().device().info().selector),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("No plugin was found in"), std::string::npos) << message;
}

class AddedSetTest : public test::PluginFolder {};

TEST_F(AddedSetTest, GoesBeforeTheShippedSets) {
  test::ordered_json manifest = test::good_manifest();
  manifest["id"] = "zz_added";
  manifest["kinds"] = {"kernels"};
  manifest["provides"] = test::ordered_json::parse(
      R"([{"op": "tanh"}, {"op": "matmul", "priority": -5}, {"op": "exp", "yields": true}])");
  const DeviceInfo& device = shared_device().device().info();
  PluginOptions options;
  options.paths = plugin_paths(shared_device().args().plugins);
  options.paths.push_back(add("added", manifest));
  PluginHost host(options, {device}, Logger());

  const OpRow& row = find_op("matmul");
  const Attrs attrs = complete_attrs(row, {});
  const std::vector<TensorDesc> square = {{DType::kF32, {4, 4}}};
  const std::vector<TensorDesc> both = {square[0], square[0]};
  const auto sets = KernelChoice(host, {}).sets(device, {row, both, square, attrs});
  ASSERT_GE(sets.size(), 2u);
  EXPECT_EQ(sets.front(), "zz_added") << host.rejections();  // although it names no device
  EXPECT_EQ(sets.back(), "generic");

  const auto own = ops_with_own_kernels(host, {device}, {});
  EXPECT_EQ(own.count("tanh"), 1u);
  EXPECT_EQ(own.count("exp"), 0u);
}

}  // namespace
}  // namespace testing
}  // namespace netcl
