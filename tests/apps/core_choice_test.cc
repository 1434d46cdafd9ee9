// The cores of a CPU device for steps of some sizes, and --cores.
#include "apps/netcl_app/core_choice.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace netcl::app {
namespace {

TEST(CoreChoiceTest, LargerStepsTakeMoreCores) {
  const StepWork digits = {20, 3e5, 1e5}, mlp = {24, 6.4e7, 2e6}, resnet = {350, 2.7e10, 4e8};
  EXPECT_EQ(useful_cores(digits), 1);
  EXPECT_GT(useful_cores(mlp), 1);
  EXPECT_LT(useful_cores(mlp), 8);
  EXPECT_GT(useful_cores(resnet), 16);
  EXPECT_EQ(useful_cores({}), 1);
}

TEST(CoreChoiceTest, WishesAreKept) {
  const StepWork small = {20, 1e5, 1e5};
  EXPECT_EQ(most_cores("all", small), 0);
  EXPECT_EQ(most_cores("7", small), 7);
  EXPECT_EQ(most_cores("auto", small), 1);
  for (const char* wish : {"", "0", "-1", "some", "3x", "99999999999999999999"}) {
    try {
      most_cores(wish, small);
      FAIL() << wish;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage) << wish;
      EXPECT_NE(error.message().find("expected auto, all or a number"), std::string::npos);
    }
  }
}

TEST(CoreChoiceTest, SaysWhatStaysIdle) {
  WorkerPlace place;
  place.device.type = "cpu";
  place.device.selector = "cpu:0";
  place.device.compute_units = 16;
  EXPECT_NE(core_note({place}, 3).find("cpu:0 works on 3 of its 16 cores"), std::string::npos);
  EXPECT_EQ(core_note({place}, 16), "");
  EXPECT_EQ(core_note({place}, 0), "");
  place.shares.count = 2;
  EXPECT_EQ(core_note({place}, 3), "");
  place.shares.count = 1;
  place.device.type = "gpu";
  EXPECT_EQ(core_note({place}, 3), "");
}

}  // namespace
}  // namespace netcl::app
