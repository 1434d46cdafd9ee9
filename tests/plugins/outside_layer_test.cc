// A layer plugin from outside of the tree: one file, compiled by plain g++ against the two headers
// and nothing else of netcl, is found by its manifest, traced, differentiated and trained.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "core/base/error.h"
#include "core/distributed/trainer.h"
#include "core/nn/step_graphs.h"
#include "core/runtime/kernel_choice.h"
#include "core/runtime/layer_set.h"
#include "core/runtime/plugin_host.h"

namespace netcl {
namespace {

namespace fs = std::filesystem;

// Where the test keeps the plugin; removed at the end.
class OutsideLayerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    root() = fs::path(testing::TempDir()) / ("netcl_outside_" + std::to_string(::getpid()));
    fs::create_directories(root() / "sdk");
    fs::create_directories(root() / "plugins" / "example");
    for (const char* header : {"netcl_base.hpp", "netcl_plugin.h", "netcl_plugin.hpp"}) {
      fs::copy_file(fs::path("core/abi") / header, root() / "sdk" / header);
    }
    fs::copy_file("tests/plugins/outside/plugin.json", root() / "plugins/example/plugin.json");
    const std::string command =
        "g++ -std=c++17 -O2 -Wall -Wextra -fPIC -shared -fvisibility=hidden -fno-gnu-unique -I'" +
        (root() / "sdk").string() + "' -o '" + (root() / "plugins/example/libexample.so").string() +
        "' tests/plugins/outside/scaled_tanh.cc";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  static void TearDownTestSuite() { fs::remove_all(root()); }
  static fs::path& root() {
    static fs::path path;
    return path;
  }

  OutsideLayerTest() {
    // Kernels and the standard layers come from the project's own plugins; no other place is
    // searched. Runfiles are links, which the host refuses, so the real directory is named.
    const fs::path own =
        fs::canonical("plugins/dir/standard/plugin.json").parent_path().parent_path();
    ::setenv("NETCL_PLUGIN_PATH", own.c_str(), 1);
    for (FoundDevice& found : enumerate_devices()) {
      if (found.info.selector == "cpu:0")
        device_ = std::make_unique<Device>(found, root() / "cache", Logger());
    }
    if (!device_) throw std::runtime_error("the test needs a CPU device, such as PoCL's");
    PluginOptions options;
    options.paths = {root() / "plugins"};
    plugins_ =
        std::make_unique<PluginHost>(options, std::vector<DeviceInfo>{device_->info()}, Logger());
    layers_ = std::make_unique<LayerSet>(*plugins_);
  }
  ~OutsideLayerTest() override { ::unsetenv("NETCL_PLUGIN_PATH"); }

  StepGraphs graphs(const char* layer) {
    StepSpec spec;
    spec.input = {2};
    spec.layers =
        nlohmann::ordered_json::parse(R"([{"type": "linear", "out": 16}, )" + std::string(layer) +
                                      R"(, {"type": "linear", "out": 2}])");
    spec.optimizer = optimizer_;
    return build_step_graphs(spec, *layers_);
  }
  std::string refusal(const char* layer) {
    try {
      graphs(layer);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kUsage);
      return e.message();
    }
    return "(no error)";
  }

  const Optimizer optimizer_ = Optimizer::adamw(0.05);
  std::unique_ptr<Device> device_;
  std::unique_ptr<PluginHost> plugins_;
  std::unique_ptr<LayerSet> layers_;
};

// Two interleaved half-rings: no line separates them.
Dataset rings(int64_t n) {
  std::vector<float> features;
  std::vector<int32_t> labels;
  for (int64_t i = 0; i < n; ++i) {
    const double angle = 3.14159265 * static_cast<double>(i) / static_cast<double>(n);
    const bool second = i % 2 == 1;
    features.push_back(static_cast<float>(second ? 1 - std::cos(angle) : std::cos(angle)));
    features.push_back(static_cast<float>(second ? 0.5 - std::sin(angle) : std::sin(angle)));
    labels.push_back(second ? 1 : 0);
  }
  DatasetSpec spec;
  spec.sample_shape = {2};
  spec.num_samples = n;
  spec.features = features.data();
  spec.labels = labels.data();
  return Dataset::create(spec);
}

TEST_F(OutsideLayerTest, IsFoundByItsManifest) {
  bool seen = false;
  for (const PluginRow& row : plugins_->rows()) {
    if (row.id != "example") continue;
    seen = true;
    EXPECT_EQ(row.state, "serving") << row.detail;
  }
  EXPECT_TRUE(seen);
}

TEST_F(OutsideLayerTest, ChecksItsKeys) {
  EXPECT_NE(
      refusal(R"({"type": "example.scaled_tanh", "slop": 1})").find("did you mean \"slope\"?"),
      std::string::npos);
  EXPECT_NE(refusal(R"({"type": "example.scaled_tanh", "gain": -1})").find("gain"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"type": "example.scaled_tan"})").find("example.scaled_tanh"),
            std::string::npos);
}

TEST_F(OutsideLayerTest, TrainsWithItsOwnParameter) {
  const StepGraphs model = graphs(R"({"type": "example.scaled_tanh"})");
  EXPECT_EQ(model.num_parameters(), 2 * 16 + 16 + 1 + 16 * 2 + 2);
  const ArenaLayout::Entry& gain = model.parameters.find("layers.1.gain");

  const Dataset data = rings(128);
  const auto queue = Queue::create(*device_);
  KernelChoice kernels(*plugins_, {});
  const cl::Buffer gradients = device_->make_buffer(
      static_cast<size_t>(model.gradients.num_floats()) * sizeof(float), "the gradients");
  Replica replica(model, optimizer_, kernels, queue, gradients, gradients, 32);
  TrainerOptions options;
  options.lr = optimizer_.lr;
  options.batch_size = 32;
  options.epochs = 100;
  options.seed = 1;
  Trainer trainer(options, replica, Group{}, ShardPlan("even", 1), data, nullptr, {});
  trainer.prepare();
  replica.initialise(1);
  EXPECT_FLOAT_EQ(replica.read_parameters()[static_cast<size_t>(gain.offset)], 1.7159f);
  const Sums before = trainer.evaluate(data).value();
  EXPECT_EQ(trainer.run(), StopReason::kFinished);
  const Sums after = trainer.evaluate(data).value();
  EXPECT_LT(after.loss(), 0.3 * before.loss());
  EXPECT_GT(after.accuracy(), 0.95);
  // Its gradient reached the layer's own parameter.
  EXPECT_GT(std::abs(replica.read_parameters()[static_cast<size_t>(gain.offset)] - 1.7159f), 0.01f);
}

}  // namespace
}  // namespace netcl
