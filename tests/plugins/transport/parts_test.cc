// Parts of the host transport alone: the reduction loops and the zero-copy probe.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "plugins/transport/host/cl_handles.h"
#include "plugins/transport/host/reduce.h"
#include "plugins/transport/host/staging_probe.h"
#include "tests/plugins/transport/fake_host.h"

namespace netcl::host_transport {
namespace {

template <typename T>
std::vector<T> reduced(uint32_t dtype, uint32_t op, const std::vector<std::vector<T>>& in) {
  std::vector<const void*> inputs;
  for (const auto& v : in) inputs.push_back(v.data());
  std::vector<T> out(in[0].size());
  reduce(dtype, op, inputs.data(), static_cast<uint32_t>(in.size()), out.data(), out.size());
  return out;
}

TEST(Reduce, IntegersWrap) {
  const int32_t top = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(reduced<int32_t>(NETCL_I32, NETCL_SUM, {{top}, {1}})[0],
            std::numeric_limits<int32_t>::min());
  const int64_t top64 = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(reduced<int64_t>(NETCL_I64, NETCL_SUM, {{top64, 1}, {1, 2}}),
            (std::vector<int64_t>{std::numeric_limits<int64_t>::min(), 3}));
  EXPECT_EQ(reduced<int64_t>(NETCL_I64, NETCL_MIN, {{-5}, {4}, {-6}})[0], -6);
}

TEST(Reduce, AddsInRankOrder) {
  // 1 is lost beside 1e8 in single precision, unless the big ones cancel first.
  EXPECT_EQ(reduced<float>(NETCL_F32, NETCL_SUM, {{1.0f}, {1e8f}, {-1e8f}})[0], 0.0f);
  EXPECT_EQ(reduced<float>(NETCL_F32, NETCL_SUM, {{1e8f}, {-1e8f}, {1.0f}})[0], 1.0f);
}

TEST(Reduce, EveryNanIsTheQuietOne) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto out = reduced<float>(NETCL_F32, NETCL_SUM, {{infinity}, {-infinity}});
  uint32_t bits = 0;
  std::memcpy(&bits, out.data(), 4);
  EXPECT_EQ(bits, 0x7fc00000u);
}

TEST(Reduce, KnowsWhatItCan) {
  EXPECT_TRUE(can_reduce(NETCL_F32, NETCL_PROD));
  EXPECT_FALSE(can_reduce(NETCL_BOOL, NETCL_SUM));
  EXPECT_FALSE(can_reduce(NETCL_F32, 0));
  EXPECT_FALSE(can_reduce(NETCL_F32, 6));
}

TEST(Probe, FindsABufferThatIsACopy) {
  testing::TestDevice device;
  ClHandles cl{device.context, device.device, nullptr, nullptr};
  cl_int code = CL_SUCCESS;
  cl.queue = clCreateCommandQueue(cl.context, cl.device, 0, &code);
  check_cl(code, "clCreateCommandQueue");
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(4096, kProbeBytes),
                                                           &std::free);
  std::memset(memory.get(), 0, kProbeBytes);
  cl_mem copy = clCreateBuffer(cl.context, CL_MEM_READ_WRITE, kProbeBytes, nullptr, &code);
  check_cl(code, "clCreateBuffer");
  EXPECT_EQ(probe_buffer(cl, copy, memory.get()),
            "what the device writes does not reach the memory");
  clReleaseMemObject(copy);
  clReleaseCommandQueue(cl.queue);
}

}  // namespace
}  // namespace netcl::host_transport
