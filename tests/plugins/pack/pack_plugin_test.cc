// The pack reader behind its C table: choice of variants, recipes, refusals, broken directories.
#include "plugins/pack/pack_plugin.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/plugins/fake_host.h"
#include "tests/plugins/pack/op_key.h"

namespace netcl {
namespace testing {
namespace {

constexpr const char* kVariants = R"json({"ops": {"scale": [
  {"id": "wide", "needs": "whole vectors", "when": "n % 8 == 0", "prefer": "is_cpu",
   "let": {"items": "n / 8"},
   "launches": [{"sources": ["scale.cl"], "entry": "scale_wide", "args": ["in0", "out0"],
                 "global": ["items"], "local": [1]}]},
  {"id": "plain", "scratch": ["n * 4", 8],
   "launches": [
     {"if": "n > 100", "sources": ["scale.cl"], "entry": "big", "args": [], "global": [1]},
     {"sources": ["scale.cl"], "entry": "scale_$mode", "options": "-DX=$n",
      "defines": {"T": "$in0_type", "F(x)": "$expr"},
      "args": ["in0", "in1?", "out0", "scratch1", "local:4 * n", "i32:n - 1", "f32:p", "f32:q?",
               "i32x8:dims"],
      "global": ["n", 2]}]}]}})json";

struct Launch {
  std::string entry, options, prelude;
  std::vector<netcl_arg> args;
  std::vector<int32_t> vector;
  std::vector<uint64_t> global, local;
};
struct Recipe {
  std::string variant;
  std::vector<uint64_t> scratch;
  std::vector<Launch> launches;
};

netcl_rc store_recipe(void* ctx, const void* item) {
  const auto& from = *static_cast<const netcl_recipe*>(item);
  auto& to = *static_cast<Recipe*>(ctx);
  to.variant = plugin::view(from.variant);
  to.scratch.assign(from.scratch_bytes, from.scratch_bytes + from.n_scratch);
  for (uint32_t i = 0; i < from.n_launches; ++i) {
    const netcl_launch& l = from.launches[i];
    Launch launch;
    launch.entry = plugin::view(l.entry);
    launch.options = plugin::view(l.options);
    launch.args.assign(l.args, l.args + l.n_args);
    launch.global.assign(l.global, l.global + l.dims);
    launch.local.assign(l.local, l.local + l.dims);
    if (l.n_sources > 1) launch.prelude = plugin::view(l.sources[0].text);
    for (const netcl_arg& arg : launch.args) {
      if (arg.kind == NETCL_ARG_I32X8) launch.vector.assign(arg.u.v8, arg.u.v8 + 8);
    }
    to.launches.push_back(std::move(launch));
  }
  return NETCL_OK;
}

class PackPluginTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/packXXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    call_.plugin_dir = pattern;
    write("plugin.json", R"({"id": "test.scale", "version": "1.2.3"})");
    write("variants.json", kVariants);
    write("scale.cl", "// scale");
  }
  void TearDown() override {
    if (api_.self != nullptr) api_.close(api_.self);
    std::filesystem::remove_all(call_.plugin_dir);
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(call_.plugin_dir + "/" + name) << text;
  }
  netcl_rc open() {
    api_.size = sizeof(api_);
    return plugin::open_plugin<pack::PackPlugin>(&host_, call_.handle(), &api_);
  }
  const netcl_kernels_api& kernels() {
    return *static_cast<const netcl_kernels_api*>(
        api_.query(api_.self, plugin::to_abi(NETCL_KERNELS_INTERFACE)));
  }
  netcl_rc plan(const OpKey& key, Recipe* recipe, const std::string& variant = "") {
    const netcl_opkey view = key.view();
    return kernels().plan(api_.self, call_.handle(), device_.handle(), &view,
                          plugin::to_abi(variant), &store_recipe, recipe);
  }
  static void fill(OpKey* key, int64_t n) {
    key->in({n}).out({n}).integer("n", n).text("mode", "dense").text("expr", "x * 2");
    key->number("p", 0.5).list("dims", {1, 2, 3, 4, 5, 6, 7, 8});
  }

  netcl_host host_ = fake_host();
  FakeDevice device_;
  FakeCall call_;
  netcl_plugin_api api_{};
};

TEST_F(PackPluginTest, KnowsItselfFromTheManifest) {
  ASSERT_EQ(open(), uint32_t{NETCL_OK}) << call_.text;
  EXPECT_EQ(plugin::view(api_.id), "test.scale");
  EXPECT_EQ(plugin::view(api_.version), "1.2.3");
  EXPECT_EQ(api_.query(api_.self, plugin::to_abi("netcl.layer/1")), nullptr);
}

TEST_F(PackPluginTest, TakesTheFirstPreferredVariant) {
  ASSERT_EQ(open(), uint32_t{NETCL_OK}) << call_.text;
  OpKey key("scale");
  fill(&key, 16);
  Recipe recipe;
  ASSERT_EQ(plan(key, &recipe), uint32_t{NETCL_OK}) << call_.text;
  EXPECT_EQ(recipe.variant, "wide");
  EXPECT_EQ(recipe.launches.at(0).global, std::vector<uint64_t>{2});
  device_.integers["is_cpu"] = 0;
  Recipe other, named;
  ASSERT_EQ(plan(key, &other), uint32_t{NETCL_OK}) << call_.text;
  EXPECT_EQ(other.variant, "plain");
  // Not preferred, but it can serve: a name brings it.
  ASSERT_EQ(plan(key, &named, "wide"), uint32_t{NETCL_OK}) << call_.text;
  EXPECT_EQ(named.variant, "wide");
}

TEST_F(PackPluginTest, FillsTheRecipe) {
  ASSERT_EQ(open(), uint32_t{NETCL_OK}) << call_.text;
  OpKey key("scale");
  fill(&key, 9);
  Recipe recipe;
  ASSERT_EQ(plan(key, &recipe), uint32_t{NETCL_OK}) << call_.text;
  EXPECT_EQ(recipe.variant, "plain");
  EXPECT_EQ(recipe.scratch, (std::vector<uint64_t>{36, 8}));
  ASSERT_EQ(recipe.launches.size(), 1u);  // the other one's `if` is false
  const Launch& l = recipe.launches[0];
  EXPECT_EQ(l.entry, "scale_dense");
  EXPECT_EQ(l.options, "-DX=9");
  EXPECT_EQ(l.prelude, "#define T float\n#define F(x) x * 2\n");
  EXPECT_EQ(l.global, (std::vector<uint64_t>{9, 2}));
  EXPECT_EQ(l.local, (std::vector<uint64_t>{0, 0}));
  ASSERT_EQ(l.args.size(), 9u);
  EXPECT_EQ(l.args[1].kind, uint32_t{NETCL_ARG_INPUT});
  EXPECT_EQ(l.args[1].index, 0u);  // input 1 is absent: input 0 stands in
  EXPECT_EQ(l.args[3].index, 1u);
  EXPECT_EQ(l.args[4].u.bytes, 36u);
  EXPECT_EQ(l.args[5].u.i, 8);
  EXPECT_EQ(l.args[6].u.f, 0.5);
  EXPECT_EQ(l.args[7].u.f, 0);
  EXPECT_EQ(l.vector, (std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_F(PackPluginTest, DeclinesWithExpressionAndValues) {
  ASSERT_EQ(open(), uint32_t{NETCL_OK}) << call_.text;
  OpKey key("scale");
  fill(&key, 9);
  Recipe recipe;
  EXPECT_EQ(plan(key, &recipe, "wide"), uint32_t{NETCL_DECLINE});
  EXPECT_EQ(call_.text, "scale: variant wide needs `n % 8 == 0`, but n=9 (whole vectors)");
  EXPECT_EQ(plan(key, &recipe, "narrow"), uint32_t{NETCL_DECLINE});
  EXPECT_EQ(call_.text, "scale: the op has no variant \"narrow\" in this set");
  EXPECT_EQ(plan(OpKey("conv9d"), &recipe), uint32_t{NETCL_DECLINE});
  EXPECT_EQ(call_.text, "conv9d: the set has no kernels for this op");
}

TEST_F(PackPluginTest, RulesThatCannotBeEvaluatedAreErrors) {
  ASSERT_EQ(open(), uint32_t{NETCL_OK}) << call_.text;
  OpKey key("scale");
  key.in({9}).out({9}).integer("n", 9).text("mode", "dense").text("expr", "x");
  Recipe recipe;
  EXPECT_EQ(plan(key, &recipe), uint32_t{NETCL_E_ARG});
  EXPECT_EQ(call_.text, "scale, variant plain: argument 'f32:p': the op has no such attribute");
}

TEST_F(PackPluginTest, EnumeratesWhatServesBestFirst) {
  ASSERT_EQ(open(), uint32_t{NETCL_OK}) << call_.text;
  device_.integers["is_cpu"] = 0;
  OpKey key("scale");
  fill(&key, 16);
  std::vector<std::string> ids;
  const netcl_opkey view = key.view();
  const auto store_id = [](void* ctx, const void* item) {
    const auto& variant = *static_cast<const netcl_variant*>(item);
    static_cast<std::vector<std::string>*>(ctx)->emplace_back(plugin::view(variant.id));
    return netcl_rc{NETCL_OK};
  };
  ASSERT_EQ(kernels().enumerate(api_.self, call_.handle(), device_.handle(), &view, store_id, &ids),
            uint32_t{NETCL_OK});
  EXPECT_EQ(ids, (std::vector<std::string>{"plain", "wide"}));
}

TEST_F(PackPluginTest, KnowsSubgroupsArchitectureAndExtensions) {
  write("variants.json", R"json({"ops": {"scale": [
    {"id": "matrix", "when": "subgroup_max == 64 && arch == 'gfx90a' && cl_khr_fp16",
     "launches": [{"sources": ["scale.cl"], "entry": "matrix", "args": [], "global": [1]}]}]}})json");
  ASSERT_EQ(open(), uint32_t{NETCL_OK}) << call_.text;
  OpKey key("scale");
  fill(&key, 9);
  Recipe recipe;
  device_.integers["subgroup_min"] = device_.integers["subgroup_max"] = 64;
  device_.texts["arch"] = "gfx90a";
  device_.texts["extensions"] = "cl_khr_fp64  cl_khr_fp16";
  ASSERT_EQ(plan(key, &recipe), uint32_t{NETCL_OK}) << call_.text;
  EXPECT_EQ(recipe.variant, "matrix");
  device_.texts["extensions"] = "cl_khr_fp16_of_another_kind";
  EXPECT_EQ(plan(key, &recipe), uint32_t{NETCL_DECLINE});
  EXPECT_EQ(call_.text,
            "scale: variant matrix needs `subgroup_max == 64 && arch == 'gfx90a' && cl_khr_fp16`, "
            "but arch=gfx90a cl_khr_fp16=0 subgroup_max=64");
}

constexpr const char* kTunedVariants = R"json({"ops": {"scale": [
  {"id": "rows", "when": "ROWS * LANES <= 64",
   "tunables": {"ROWS": {"values": [2, 4, 32], "default": "n > 8 ? 4 : n"},
                "LANES": {"values": [1, 8], "default": 1}},
   "let": {"groups": "ceil_div(n, ROWS)"},
   "launches": [{"sources": ["scale.cl"], "entry": "rows", "args": [],
                 "defines": {"ROWS": "$ROWS"}, "global": ["groups * LANES"]}]}]}})json";

netcl_rc store_tunable(void* ctx, const void* item) {
  const auto& from = *static_cast<const netcl_tunable*>(item);
  std::string text = std::string(plugin::view(from.name)) + ":";
  for (uint32_t i = 0; i < from.n_values; ++i) text += " " + std::to_string(from.values[i]);
  static_cast<std::vector<std::string>*>(ctx)->push_back(text + " default " +
                                                         std::to_string(from.def));
  return NETCL_OK;
}

TEST_F(PackPluginTest, TunablesHaveDefaultsAndCanBeSet) {
  write("variants.json", kTunedVariants);
  ASSERT_EQ(open(), uint32_t{NETCL_OK}) << call_.text;
  OpKey key("scale");
  fill(&key, 60);
  struct Case {
    const char *wanted, *answered;
    uint64_t global;
    const char* define;
  };
  for (const Case& c :
       {Case{"", "rows", 15, "#define ROWS 4\n"}, Case{"rows", "rows", 15, "#define ROWS 4\n"},
        Case{"rows(ROWS=4)", "rows", 15, "#define ROWS 4\n"},
        Case{"rows(ROWS=2)", "rows(ROWS=2)", 30, "#define ROWS 2\n"},
        Case{"rows(LANES=8,ROWS=2)", "rows(ROWS=2,LANES=8)", 240, "#define ROWS 2\n"}}) {
    SCOPED_TRACE(c.wanted);
    Recipe recipe;
    ASSERT_EQ(plan(key, &recipe, c.wanted), uint32_t{NETCL_OK}) << call_.text;
    EXPECT_EQ(recipe.variant, c.answered);
    EXPECT_EQ(recipe.launches.at(0).global, std::vector<uint64_t>{c.global});
    EXPECT_EQ(recipe.launches.at(0).prelude, c.define);
  }
  const netcl_opkey view = key.view();
  std::vector<std::string> knobs;
  ASSERT_EQ(kernels().tunables(api_.self, call_.handle(), device_.handle(), &view,
                               plugin::to_abi("rows"), &store_tunable, &knobs),
            uint32_t{NETCL_OK})
      << call_.text;
  EXPECT_EQ(knobs, (std::vector<std::string>{"ROWS: 2 4 32 default 4", "LANES: 1 8 default 1"}));
}

TEST_F(PackPluginTest, SettingsThatDoNotExistAreDeclined) {
  write("variants.json", kTunedVariants);
  ASSERT_EQ(open(), uint32_t{NETCL_OK}) << call_.text;
  OpKey key("scale");
  fill(&key, 60);
  for (const auto& [wanted, words] : std::vector<std::pair<std::string, std::string>>{
           {"rows(DEPTH=2)", "no tunable \"DEPTH\"; it has: ROWS LANES"},
           {"rows(ROWS=3)", "ROWS=3; it may be 2 4 32 or 4"},
           {"rows(ROWS=2,ROWS=4)", "ROWS is set twice"},
           {"rows(ROWS=32,LANES=8)", "ROWS * LANES <= 64"},
           {"rows(ROWS=)", "expected ID or ID(NAME=NUMBER,...)"},
           {"rows(ROWS=99999999999999999999)", "expected ID or ID(NAME=NUMBER,...)"},
           {"rows(", "expected ID or ID(NAME=NUMBER,...)"},
           {"(ROWS=2)", "expected ID or ID(NAME=NUMBER,...)"},
           {"other(ROWS=2)", "no variant \"other\""}}) {
    SCOPED_TRACE(wanted);
    Recipe recipe;
    EXPECT_EQ(plan(key, &recipe, wanted), uint32_t{NETCL_DECLINE});
    EXPECT_NE(call_.text.find(words), std::string::npos) << call_.text;
  }
}

TEST_F(PackPluginTest, BrokenDirectoriesNameTheFile) {
  write("plugin.json", R"({"id": "x"})");
  EXPECT_EQ(open(), uint32_t{NETCL_E_ARG});
  EXPECT_NE(call_.text.find("plugin.json: member \"version\""), std::string::npos) << call_.text;
  write("plugin.json", R"({"id": "x", "version": "1"})");
  ASSERT_EQ(open(), uint32_t{NETCL_OK}) << call_.text;
  std::filesystem::remove(call_.plugin_dir + "/scale.cl");
  OpKey key("scale");
  fill(&key, 16);
  Recipe recipe;
  EXPECT_EQ(plan(key, &recipe), uint32_t{NETCL_E_ARG});
  EXPECT_NE(call_.text.find("scale.cl: cannot be read"), std::string::npos) << call_.text;
}

TEST_F(PackPluginTest, PlansFromManyThreads) {
  ASSERT_EQ(open(), uint32_t{NETCL_OK}) << call_.text;
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      FakeCall call;
      call.plugin_dir = call_.plugin_dir;
      OpKey key("scale");
      fill(&key, 16);
      const netcl_opkey view = key.view();
      Recipe recipe;
      const netcl_rc rc = kernels().plan(api_.self, call.handle(), device_.handle(), &view,
                                         plugin::to_abi(""), &store_recipe, &recipe);
      if (rc == NETCL_OK && recipe.variant == "wide") ++good;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 8);
}

}  // namespace
}  // namespace testing
}  // namespace netcl
