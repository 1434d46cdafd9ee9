// main of the tests that run on a device: --device=SELECTOR, --plugins=DIR, --smallest, --every.
#include <gtest/gtest.h>

#include "tests/ops/device_fixture.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  netcl::testing::set_device_args(&argc, argv);
  const int result = RUN_ALL_TESTS();
  netcl::testing::close_shared_device();
  return result;
}
