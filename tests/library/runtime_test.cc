// A program's view of devices: found, selected, shared.
#include "core/runtime/runtime.h"

#include "core/distributed/device_manager.h"
#include "core/distributed/queue_group.h"
#include "tests/library/library.h"

namespace netcl {
namespace testing {
namespace {

class RuntimeTest : public LibraryTest {};

TEST_F(RuntimeTest, AllLeavesSimulatorsOut) {
  const DeviceManager manager(runtime());
  size_t real = 0;
  for (const DeviceInfo& info : manager.devices()) real += info.type != "simulator" ? 1 : 0;
  ASSERT_GT(real, 0u);
  EXPECT_EQ(manager.queues("all").size(), real);
  EXPECT_EQ(manager.queues().size(), real);
}

TEST_F(RuntimeTest, TheSameNameIsTheSameQueue) {
  const DeviceManager manager(runtime());
  EXPECT_EQ(manager.queues("cpu:0")[0], manager.queues("cpu")[0]);
  EXPECT_EQ(manager.queues("cpu:0/2"), manager.queues("cpu:0/2"));
  EXPECT_NE(manager.queues("cpu:0/2")[0], manager.queues("cpu:0")[0]);
}

TEST_F(RuntimeTest, AProcessorIsSharedByEqualPartsWhereItCanBe) {
  const DeviceManager manager(runtime());
  const int64_t units = manager.queues("cpu:0")[0]->device().info().compute_units;
  for (const int64_t n : {2, 3}) {
    const auto shares = manager.queues("cpu:0/" + std::to_string(n));
    ASSERT_EQ(shares.size(), static_cast<size_t>(n));
    for (size_t i = 0; i < shares.size(); ++i) {
      const DeviceInfo& info = shares[i]->device().info();
      EXPECT_EQ(info.compute_units, units % n == 0 ? units / n : units);
      EXPECT_EQ(info.selector, units % n == 0 ? "cpu:0#" + std::to_string(i) : "cpu:0");
      for (size_t j = 0; j < i; ++j) EXPECT_NE(shares[i], shares[j]);
    }
  }
}

TEST_F(RuntimeTest, AProcessorIsSharedByPartsOfGivenSizes) {
  const DeviceManager manager(runtime());
  const int64_t units = manager.queues("cpu:0")[0]->device().info().compute_units;
  if (units < 2) GTEST_SKIP() << "one compute unit";
  const std::string selector = str_cat("cpu:0/1+", units - 1);
  const auto shares = manager.queues(selector);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(manager.queues(selector), shares);
  const int64_t expected[] = {1, units - 1};
  for (size_t i = 0; i < 2; ++i) {
    const Device& device = shares[i]->device();
    EXPECT_EQ(device.info().compute_units, expected[i]);
    EXPECT_EQ(device.cl_device().getInfo<CL_DEVICE_MAX_COMPUTE_UNITS>(), expected[i]);
    EXPECT_EQ(device.info().selector, str_cat("cpu:0#", i));
    EXPECT_EQ(Tensor::from_floats(shares[i], Shape{2}, {1, 2}).to_floats(),
              (std::vector<float>{1, 2}));
  }
}

TEST_F(RuntimeTest, QueuesComputeSideBySide) {
  std::vector<Tensor> tensors;
  for (const auto& queue : queues(3)) {
    tensors.push_back(Tensor::from_floats(queue, Shape{3}, {1, 2, 3}));
  }
  wait_all(queues(3));
  for (const Tensor& tensor : tensors) {
    EXPECT_EQ(tensor.to_floats(), (std::vector<float>{1, 2, 3}));
  }
}

TEST_F(RuntimeTest, MistakesAreNamed) {
  const DeviceManager manager(runtime());
  expect_has(error_of(ErrorCode::kUsage, [&] { manager.queues("tpu:0"); }), "cpu:0");
  expect_has(error_of(ErrorCode::kUsage, [&] { manager.queues("cpu:0/0"); }), "from 1 to");
  expect_has(error_of(ErrorCode::kUsage, [&] { manager.queues("cpu:0/1+100000"); }),
             "100001 compute units, but cpu:0");
  expect_has(error_of(ErrorCode::kUsage, [&] { runtime().queue(manager.devices()[0], 2, 2); }),
             "queue 2 of 2");
  DeviceInfo other = manager.devices()[0];
  other.platform_device = 77;
  expect_has(error_of(ErrorCode::kDevice, [&] { runtime().queue(other); }), "is not among");
}

TEST_F(RuntimeTest, AMissingTransportIsNamed) {
  GroupOptions options;
  options.transport = "carrier_pigeon";
  expect_has(error_of(ErrorCode::kPlugin, [&] { QueueGroup(runtime(), queues(2), options); }),
             "carrier_pigeon");
}

}  // namespace
}  // namespace testing
}  // namespace netcl
