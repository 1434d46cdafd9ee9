// Parts of the host transport alone: the reduction loops and the probe of the ways to stage.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
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

// Blocks that begin anywhere, of every length around a vector and a line.
TEST(Reduce, InstructionsAndStoresChangeNoBit) {
  if (best_isa() != Isa::kAvx2) GTEST_SKIP() << "this processor has the baseline only";
  constexpr size_t kBytes = 4096;
  std::vector<std::vector<unsigned char>> in(3, std::vector<unsigned char>(kBytes));
  uint32_t x = 12345;
  for (auto& v : in) {
    for (unsigned char& b : v)
      b = static_cast<unsigned char>((x = x * 1664525u + 1013904223u) >> 24);
  }
  const double weights[] = {0.5, 0, 3};
  for (const uint32_t dtype : {NETCL_F32, NETCL_F16, NETCL_BF16, NETCL_I32, NETCL_I64, NETCL_U8}) {
    const size_t size = element_bytes(dtype);
    for (const uint32_t op : {NETCL_SUM, NETCL_MAX, NETCL_MIN, NETCL_PROD, NETCL_MEAN}) {
      for (size_t first = 0; first < 20; ++first) {
        for (const size_t count : {0, 1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 200, 400}) {
          const void* inputs[3];
          for (size_t r = 0; r < 3; ++r) inputs[r] = in[r].data() + first * size;
          std::vector<unsigned char> want;
          for (const Isa isa : {Isa::kBaseline, Isa::kAvx2}) {
            for (const bool stream : {false, true}) {
              std::vector<unsigned char> out(kBytes, 0xa5);
              ReduceOptions options;
              options.weights = weights;
              options.isa = isa;
              options.stream = stream;
              reduce(dtype, op, inputs, 3, out.data() + first * size, count, options);
              if (want.empty()) want = out;
              ASSERT_EQ(out, want) << "dtype " << dtype << " op " << op << " first " << first
                                   << " count " << count << " stream " << stream;
              ASSERT_EQ(out[first * size + count * size], 0xa5) << "wrote beyond its end";
            }
          }
        }
      }
    }
  }
}

template <typename T>
void expect_mean(uint32_t dtype, const std::vector<T>& x, T wanted) {
  std::vector<const void*> inputs;
  for (const T& each : x) inputs.push_back(&each);
  for (const Isa isa : {Isa::kBaseline, best_isa()}) {
    T out{};
    ReduceOptions options;
    options.isa = isa;
    reduce(dtype, NETCL_MEAN, inputs.data(), static_cast<uint32_t>(x.size()), &out, 1, options);
    EXPECT_EQ(out, wanted) << "dtype " << dtype;
  }
}

// Sums that do not fit into the type.
TEST(Reduce, MeansOfIntegersDoNotWrap) {
  constexpr int32_t kMost32 = std::numeric_limits<int32_t>::max();
  constexpr int64_t kMost64 = std::numeric_limits<int64_t>::max(), kLeast64 = -kMost64 - 1;
  expect_mean<uint8_t>(NETCL_U8, {200, 200}, 200);
  expect_mean<uint8_t>(NETCL_U8, {255, 254, 255}, 254);  // cut towards zero
  expect_mean<int32_t>(NETCL_I32, {kMost32, kMost32, kMost32 - 4}, kMost32 - 2);
  expect_mean<int32_t>(NETCL_I32, {-7, 2}, -2);
  expect_mean<int64_t>(NETCL_I64, {kMost64, kMost64}, kMost64);
  expect_mean<int64_t>(NETCL_I64, {kLeast64, kLeast64, kLeast64 + 1}, kLeast64 + 1);
  expect_mean<int64_t>(NETCL_I64, {kLeast64, kMost64}, 0);
}

// Every 16-bit float becomes f32 and back; 1 * x rounds nothing.
TEST(Reduce, SixteenBitFloatsKeepTheirBits) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  for (const uint32_t dtype : {NETCL_F16, NETCL_BF16}) {
    const uint32_t infinity = dtype == NETCL_F16 ? 0x7c00u : 0x7f80u;
    const uint16_t quiet = dtype == NETCL_F16 ? 0x7e00 : 0x7fc0;
    for (const Isa isa : {Isa::kBaseline, best_isa()}) {
      const void* input = all.data();
      std::vector<uint16_t> out(all.size());
      ReduceOptions options;
      options.isa = isa;
      reduce(dtype, NETCL_SUM, &input, 1, out.data(), all.size(), options);
      for (size_t i = 0; i < all.size(); ++i) {
        ASSERT_EQ(out[i], (i & 0x7fffu) > infinity ? quiet : all[i]) << i;
      }
    }
  }
}

// Sums of two halves meet ties, both kinds of small numbers and the step to infinity.
TEST(Reduce, HalvesRoundAlikeWithAndWithoutF16c) {
  if (best_isa() != Isa::kAvx2) GTEST_SKIP() << "this processor has the baseline only";
  std::vector<uint16_t> a(65536), b(65536);
  for (const uint32_t other : {0x0001u, 0x03ffu, 0x8401u, 0x3c01u, 0x7bffu, 0x1234u, 0xb555u}) {
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<uint16_t>(i);
      b[i] = static_cast<uint16_t>(other);
    }
    const void* inputs[] = {a.data(), b.data()};
    for (const uint32_t op : {NETCL_SUM, NETCL_PROD}) {
      std::vector<uint16_t> baseline(a.size()), avx2(a.size());
      ReduceOptions options;
      options.isa = Isa::kBaseline;
      reduce(NETCL_F16, op, inputs, 2, baseline.data(), a.size(), options);
      options.isa = Isa::kAvx2;
      reduce(NETCL_F16, op, inputs, 2, avx2.data(), a.size(), options);
      ASSERT_EQ(avx2, baseline) << "other " << other << " op " << op;
    }
  }
}

TEST(Reduce, AMeanReadsNothingOfWeightZero) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a = {nan, nan}, b = {3, 5}, c = {7, 1};
  const void* inputs[] = {a.data(), b.data(), c.data()};
  std::vector<float> out(2);
  const double weights[] = {0, 1, 3}, none[] = {0, 0, 0};
  ReduceOptions options;
  options.weights = weights;
  reduce(NETCL_F32, NETCL_MEAN, inputs, 3, out.data(), 2, options);
  EXPECT_EQ(out, (std::vector<float>{6, 2}));
  options.weights = none;
  reduce(NETCL_F32, NETCL_MEAN, inputs, 3, out.data(), 2, options);
  EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1]));
}

TEST(Probe, TriesEveryWayAndSaysWhatItFound) {
  testing::TestDevice device;
  ClHandles cl{device.context, device.device, nullptr, nullptr};
  cl_int code = CL_SUCCESS;
  cl.queue = clCreateCommandQueue(cl.context, cl.device, 0, &code);
  check_cl(code, "clCreateCommandQueue");
  cl.out = cl.queue;
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(4096, kProbeBytes),
                                                           &std::free);
  std::memset(memory.get(), 0, kProbeBytes);
  const StagingChoice all = choose_staging(cl, true, {}, memory.get());
  for (const char* word : {"zero copy", "registered copies", "plain copies", "; uses "}) {
    EXPECT_NE(all.text.find(word), std::string::npos) << all.text;
  }
  // A device that has memory of its own is not asked to work on the host's.
  const StagingChoice own = choose_staging(cl, false, {}, memory.get());
  EXPECT_NE(own.way, Way::kZeroCopy);
  EXPECT_NE(own.text.find("memory of its own"), std::string::npos) << own.text;
  EXPECT_EQ(choose_staging(cl, true, Way::kPlain, memory.get()).way, Way::kPlain);
  EXPECT_EQ(choose_staging(cl, false, Way::kZeroCopy, memory.get()).way, Way::kPlain);
  clReleaseCommandQueue(cl.queue);
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
