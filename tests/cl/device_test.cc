// Selectors, error names, and what devices refuse.
#include "core/cl/device.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/ops/device_fixture.h"

namespace netcl {
namespace testing {
namespace {

TEST(OpenClTest, ErrorsHaveNames) {
  EXPECT_EQ(cl_error_name(CL_OUT_OF_RESOURCES), "CL_OUT_OF_RESOURCES");
  EXPECT_EQ(cl_error_name(-1001), "CL_PLATFORM_NOT_FOUND_KHR");
  EXPECT_EQ(cl_error_name(-9999), "OpenCL error -9999");
}

TEST(OpenClTest, ErrorsBecomeTheProjects) {
  try {
    with_cl_errors("stirring", [] { throw cl::Error(CL_INVALID_VALUE, "clStir"); });
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kDevice);
    EXPECT_EQ(e.message(), "stirring: clStir failed with CL_INVALID_VALUE");
  }
}

DeviceInfo make_info(const char* type, const char* platform_key) {
  DeviceInfo info;
  info.type = type;
  info.platform_key = platform_key;
  return info;
}

TEST(DeviceTest, SelectorsCountOverPlatforms) {
  std::vector<DeviceInfo> infos = {make_info("cpu", "pocl"),           make_info("gpu", "nvidia"),
                                   make_info("simulator", "oclgrind"), make_info("gpu", "nvidia"),
                                   make_info("cpu", "intel"),          make_info("gpu", "amd")};
  std::vector<DeviceInfo*> pointers;
  for (DeviceInfo& info : infos) pointers.push_back(&info);
  assign_selectors(pointers);
  const char* const selectors[] = {"cpu:0", "gpu:0", "oclgrind:0", "gpu:1", "cpu:1", "gpu:2"};
  const char* const platforms[] = {"pocl:0",   "nvidia:0", "oclgrind:0",
                                   "nvidia:1", "intel:0",  "amd:0"};
  for (size_t i = 0; i < infos.size(); ++i) {
    EXPECT_EQ(infos[i].selector, selectors[i]);
    EXPECT_EQ(infos[i].platform_selector(), platforms[i]);
  }
}

TEST(DeviceTest, FactsSurviveJson) {
  const DeviceInfo info = shared_device().device().info();
  const DeviceInfo back = device_info_from_json(to_json(info));
  EXPECT_EQ(to_json(back), to_json(info));
  EXPECT_GT(info.compute_units, 0);
  EXPECT_GT(info.memory_bytes, 0);
  EXPECT_GT(info.max_work_group, 0);
  EXPECT_LE(info.subgroup_min, info.subgroup_max);
  EXPECT_GT(info.base_align_bytes, 0);
  EXPECT_FALSE(info.selector.empty());
}

TEST(DeviceTest, RefusesMoreMemoryThanThereIs) {
  Device& device = shared_device().device();
  try {
    device.make_buffer(static_cast<size_t>(device.info().max_alloc_bytes) + 1, "the weights");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kDevice);
    EXPECT_NE(e.message().find("the weights needs"), std::string::npos) << e.message();
    EXPECT_NE(e.message().find(device.info().name), std::string::npos) << e.message();
  }
}

}  // namespace
}  // namespace testing
}  // namespace netcl
