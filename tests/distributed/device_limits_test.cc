// What is known of a device's part in a batch before anything was measured.
#include "core/distributed/device_limits.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/nn/fake_layers.h"

namespace netcl {
namespace {

StepGraphs graphs() {
  StepSpec spec;
  spec.input = Shape{8};
  spec.layers = nlohmann::ordered_json::parse(
      R"([{"type": "dense", "out": 1000}, {"type": "dense", "out": 3}])");
  testing::FakeLayers layers;
  return build_step_graphs(spec, layers);
}

DeviceInfo device(const std::string& type, int64_t memory_bytes, int64_t max_alloc_bytes) {
  DeviceInfo out;
  out.type = type;
  out.memory_bytes = memory_bytes;
  out.max_alloc_bytes = max_alloc_bytes;
  return out;
}

constexpr int64_t kMany = int64_t{1} << 34;

TEST(DeviceLimitsTest, AllRowsWhereThereIsRoom) {
  EXPECT_EQ(rows_that_fit(graphs(), device("gpu", kMany, kMany), 4096), 4096);
}

TEST(DeviceLimitsTest, TheLargestTensorOfARowCounts) {
  // 1,000 floats a row.
  EXPECT_EQ(rows_that_fit(graphs(), device("gpu", kMany, 400'000), 4096), 100);
  EXPECT_EQ(rows_that_fit(graphs(), device("gpu", kMany, 399'999), 4096), 99);
}

TEST(DeviceLimitsTest, AllTogetherCounts) {
  const int64_t rows = rows_that_fit(graphs(), device("gpu", 10'000'000, kMany), 1 << 20);
  EXPECT_GT(rows, 500);
  EXPECT_LT(rows, 2500);  // 4 kB a row for one of them
  EXPECT_EQ(rows_that_fit(graphs(), device("gpu", 1000, kMany), 64), 0);
}

// Whether kernels serve a fused op is not known yet: what its recorded ops take must fit.
TEST(DeviceLimitsTest, FusedOpsCountAsWhatTheyWereMadeOf) {
  const auto rows = [](const char* gates) {
    StepSpec spec;
    spec.input = Shape{1000};
    spec.layers =
        nlohmann::ordered_json::parse(str_cat("[", gates, R"(, {"type": "dense", "out": 3}])"));
    testing::FakeLayers layers;
    const StepGraphs graphs = build_step_graphs(spec, layers);
    return rows_that_fit(graphs, device("gpu", 4'000'000, kMany), 1 << 20);
  };
  const int64_t plain = rows(R"({"type": "gates", "fused": false})");
  EXPECT_GT(plain, 0);
  EXPECT_EQ(rows(R"({"type": "gates"})"), plain);
}

TEST(DeviceLimitsTest, OnlyGpusLikeMultiples) {
  EXPECT_EQ(limits_of(graphs(), device("gpu", kMany, kMany), 64).multiple, 32);
  EXPECT_EQ(limits_of(graphs(), device("cpu", kMany, kMany), 64).multiple, 1);
  EXPECT_EQ(limits_of(graphs(), device("cpu", kMany, kMany), 64).max_rows, 64);
}

TEST(DeviceLimitsTest, SlowKindsBeginWithLittle) {
  const DeviceInfo gpu = device("gpu", 1, 1), cpu = device("cpu", 1, 1),
                   simulator = device("simulator", 1, 1);
  EXPECT_EQ(first_weights({gpu, gpu}), (std::vector<double>{1, 1}));
  EXPECT_EQ(first_weights({cpu, cpu, cpu}), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(first_weights({gpu, cpu, simulator}), (std::vector<double>{1, 1.0 / 32, 1.0 / 1024}));
  EXPECT_EQ(first_weights({simulator, cpu}), (std::vector<double>{1.0 / 32, 1}));
}

}  // namespace
}  // namespace netcl
