// A layer plugin that brings its own kernels, compiled by plain g++ against the shipped headers:
// its kernels against its own recorded ops, what it declines, pins, and how it serves where its
// kernels do not.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/nn/fused_cases.h"
#include "core/runtime/kernel_choice.h"
#include "core/runtime/layer_set.h"
#include "core/runtime/plugin_host.h"
#include "core/verify/op_check.h"
#include "tests/ops/device_fixture.h"

namespace netcl {
namespace testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSource = "plugins/examples/fused_layer/";
constexpr const char* kOp = "example.gated_norm";

class FusedLayerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    root() = fs::path(::testing::TempDir()) / ("netcl_fused_" + std::to_string(::getpid()));
    fs::create_directories(plugin());
    fs::copy_file(std::string(kSource) + "plugin.json", plugin() / "plugin.json");
    fs::copy_file(std::string(kSource) + "gated_norm.cl", plugin() / "gated_norm.cl");
    const std::string command =
        "g++ -std=c++17 -O2 -Wall -Wextra -fPIC -shared -fvisibility=hidden -fno-gnu-unique "
        "-Icore/abi -o '" +
        (plugin() / "libfused_layer.so").string() + "' " + kSource + "fused_layer.cc";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  static void TearDownTestSuite() { fs::remove_all(root()); }
  static fs::path& root() {
    static fs::path path;
    return path;
  }
  static fs::path plugin() { return root() / "plugins/fused_layer"; }

  FusedLayerTest() {
    // Ops that layers are traced in need no plugin; nothing else is searched.
    ::setenv("NETCL_PLUGIN_PATH", (root() / "plugins").c_str(), 1);
    plugins_ = open({});
  }
  ~FusedLayerTest() override { ::unsetenv("NETCL_PLUGIN_PATH"); }

  static std::unique_ptr<PluginHost> open(PluginOptions options) {
    return std::make_unique<PluginHost>(
        options, std::vector<DeviceInfo>{shared_device().device().info()}, Logger());
  }
  std::vector<FusedCase> cases(const Shape& shape, DType dtype = DType::kF32) {
    LayerSet layers(*plugins_);
    const nlohmann::ordered_json layer = {{"type", kOp}, {"eps", 1e-3}};
    return fused_cases(layers, layer, {{dtype, shape}});
  }
  static KernelQuestion question(const FusedCase& c) { return {c.row, c.in, c.out, c.attrs}; }
  static Device& device() { return shared_device().device(); }

  std::unique_ptr<PluginHost> plugins_;
};

// Runs the recipe between guard bands, with outputs that hold no numbers, and compares.
void expect_right(const FusedCase& c, const Recipe& recipe) {
  OpCase with_values = with_inputs(c, 17);
  with_values.tolerance = 2e-5;  // of sums of up to 1031 rows or columns, in f32
  const OpCheck check(c.row, with_values, 17);
  const OpVerdict verdict = check.judge(*shared_device().queue(), recipe);
  EXPECT_TRUE(verdict.right()) << c.row.name << ": " << verdict.text();
}

TEST_F(FusedLayerTest, KernelsEqualTheRecordedOps) {
  const Shape shapes[] = {{1, 4},    {3, 8},     {7, 12}, {65, 64},  {131, 20},
                          {2, 2062}, {5, 3, 28}, {0, 12}, {1031, 4}, {2, 3, 2, 36}};
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(shape.str());
    const auto all = cases(shape);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[1].row.name, std::string(kOp) + ".grad");
    for (const FusedCase& c : all) {
      if (shape[shape.rank() - 1] / 2 % 2 != 0) {
        KernelChoice choice(*plugins_, {});
        EXPECT_EQ(choice.fused_recipe(device(), question(c)), nullptr);
        continue;
      }
      for (const char* variant : {"group16", "group128"}) {
        SCOPED_TRACE(variant);
        KernelChoice choice(*plugins_, {{c.row.name, {"fused_layer", variant}}});
        const auto recipe = choice.fused_recipe(device(), question(c));
        ASSERT_NE(recipe, nullptr);
        expect_right(c, *recipe);
      }
    }
  }
}

TEST_F(FusedLayerTest, WhatIsDeclinedIsListedAsTraced) {
  KernelChoice choice(*plugins_, {});
  for (const FusedCase& c : cases({4, 10})) {
    EXPECT_EQ(choice.fused_recipe(device(), question(c)), nullptr);
    const auto why = choice.why(device(), question(c));
    ASSERT_EQ(why.size(), 1u);
    EXPECT_EQ(why[0].verdict, "declined");
    EXPECT_EQ(why[0].reason, "the kernels read two columns at a time, and there are 5");
  }
  const std::string op = kOp;
  const auto recipe = choice.fused_recipe(device(), question(cases({4, 8})[0]));
  EXPECT_EQ(choice.chosen(),
            (std::vector<std::string>{op + ".grad: trace", op + ": fused_layer/" + recipe->variant,
                                      op + ": trace"}));
}

TEST_F(FusedLayerTest, WhyListsTheVariants) {
  KernelChoice choice(*plugins_, {});
  const auto why = choice.why(device(), question(cases({4, 8})[0]));
  ASSERT_EQ(why.size(), 2u);
  EXPECT_EQ(why[0].verdict, "chosen");
  EXPECT_EQ(why[1].verdict, "able");
  EXPECT_NE(why[0].variant, why[1].variant);
}

TEST_F(FusedLayerTest, OtherTypesAreNotOffered) {
  KernelChoice choice(*plugins_, {});
  for (const FusedCase& c : cases({4, 8}, DType::kBF16)) {
    EXPECT_EQ(choice.fused_recipe(device(), question(c)), nullptr);
  }
}

TEST_F(FusedLayerTest, Pins) {
  const auto all = cases({4, 8}), odd = cases({4, 10});
  const std::string op = kOp, grad = op + ".grad";
  const auto served = [&](const std::map<std::string, KernelPin>& pins, const FusedCase& c) {
    KernelChoice choice(*plugins_, pins);
    return choice.fused_recipe(device(), question(c)) != nullptr;
  };
  // The trace of an op is that of its gradient, too, unless that is pinned itself.
  EXPECT_FALSE(served({{op, {"trace", ""}}}, all[0]));
  EXPECT_FALSE(served({{op, {"trace", ""}}}, all[1]));
  EXPECT_TRUE(served({{op, {"trace", ""}}, {grad, {"fused_layer", ""}}}, all[1]));
  EXPECT_TRUE(served({{grad, {"trace", ""}}}, all[0]));
  EXPECT_FALSE(served({{grad, {"trace", ""}}}, all[1]));
  EXPECT_TRUE(served({{op, {"fused_layer", "group128"}}}, all[0]));
  const auto refusal = [&](const KernelPin& pin, const FusedCase& c) {
    try {
      served({{c.row.name, pin}}, c);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kPlugin);
      return e.message();
    }
    return std::string("no error");
  };
  EXPECT_NE(refusal({"fused_layer", "absent"}, all[0]).find("no variant \"absent\""),
            std::string::npos);
  EXPECT_NE(refusal({"fused_layer", ""}, odd[1]).find("two columns at a time"), std::string::npos);
  EXPECT_NE(refusal({"other", ""}, all[0]).find("the op is pinned to other"), std::string::npos);
}

// Its kernels serve no device here; the layer serves all the same.
TEST_F(FusedLayerTest, TheLayerServesWhereItsKernelsDoNot) {
  std::ifstream in(plugin() / "plugin.json");
  nlohmann::ordered_json manifest = nlohmann::ordered_json::parse(in);
  for (auto& provision : manifest["provides"]) {
    if (provision.contains("op"))
      provision["match"] = nlohmann::ordered_json::parse(R"([{"vendor": "nobody"}])");
  }
  const fs::path other = root() / "elsewhere/fused_layer";
  fs::create_directories(other);
  for (const char* file : {"libfused_layer.so", "gated_norm.cl"})
    fs::copy_file(plugin() / file, other / file);
  std::ofstream(other / "plugin.json") << manifest.dump(2);
  ::setenv("NETCL_PLUGIN_PATH", (root() / "elsewhere").c_str(), 1);
  plugins_ = open({});
  ASSERT_EQ(plugins_->rows().size(), 1u);
  EXPECT_EQ(plugins_->rows()[0].state, "serving");
  EXPECT_EQ(plugins_->rows()[0].kind, "layer+kernels");
  KernelChoice choice(*plugins_, {});
  const auto all = cases({4, 8});
  EXPECT_EQ(choice.fused_recipe(device(), question(all[0])), nullptr);
  const auto why = choice.why(device(), question(all[0]));
  ASSERT_EQ(why.size(), 1u);
  EXPECT_NE(why[0].reason.find("nobody"), std::string::npos) << why[0].reason;
}

TEST_F(FusedLayerTest, AMissingSourceIsAnErrorThatNamesIt) {
  const fs::path source = plugin() / "gated_norm.cl", away = plugin() / "away.cl";
  const auto all = cases({4, 8});
  fs::rename(source, away);
  KernelChoice choice(*plugins_, {});
  try {
    choice.fused_recipe(device(), question(all[0]));
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kPlugin);
    EXPECT_NE(e.message().find("gated_norm.cl cannot be read"), std::string::npos) << e.message();
  }
  fs::rename(away, source);
}

}  // namespace
}  // namespace testing
}  // namespace netcl
