// The oracle of `bench allreduce` on sums that are known.
#include "apps/netcl_app/bench_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/base/error.h"
#include "core/tensor/half.h"

namespace netcl::app {
namespace {

template <typename T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes out(values.size() * sizeof(T));
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}

template <typename T>
Bytes sum(DType dtype, const std::vector<std::vector<T>>& ranks) {
  RankOrderSum out(dtype, ranks[0].size());
  for (const std::vector<T>& rank : ranks) out.add(bytes_of(rank));
  return out.result();
}

TEST(RankOrderSum, AddsInTheOrderOfTheRanks) {
  // (1e8 + 1) - 1e8 loses the 1; 1e8 - 1e8 + 1 keeps it.
  EXPECT_EQ(sum<float>(DType::kF32, {{1e8f}, {1.0f}, {-1e8f}}), bytes_of<float>({0.0f}));
  EXPECT_EQ(sum<float>(DType::kF32, {{1e8f}, {-1e8f}, {1.0f}}), bytes_of<float>({1.0f}));
}

TEST(RankOrderSum, KeepsTheSignOfZero) {
  EXPECT_EQ(sum<float>(DType::kF32, {{-0.0f}, {-0.0f}}), bytes_of<float>({-0.0f}));
}

TEST(RankOrderSum, RoundsSixteenBitsOnceAtTheEnd) {
  // In f16 1 + 2^-11 is a tie that goes back to 1; three of them in f32 do not vanish.
  const uint16_t one = f16_from_float(1), small = f16_from_float(std::ldexp(1.0f, -11));
  EXPECT_EQ(sum<uint16_t>(DType::kF16, {{one}, {small}, {small}, {small}}),
            bytes_of<uint16_t>({f16_from_float(1 + 3 * std::ldexp(1.0f, -11))}));
  const uint16_t b_one = bf16_from_float(1), b_small = bf16_from_float(std::ldexp(1.0f, -8));
  EXPECT_EQ(sum<uint16_t>(DType::kBF16, {{b_one}, {b_small}, {b_small}, {b_small}}),
            bytes_of<uint16_t>({bf16_from_float(1 + 3 * std::ldexp(1.0f, -8))}));
}

TEST(RankOrderSum, IntegersWrap) {
  EXPECT_EQ(sum<uint8_t>(DType::kU8, {{200, 1}, {100, 2}}), bytes_of<uint8_t>({44, 3}));
  EXPECT_EQ(sum<int32_t>(DType::kI32, {{2147483647}, {1}}), bytes_of<int32_t>({-2147483647 - 1}));
  EXPECT_EQ(sum<int64_t>(DType::kI64, {{-5}, {3}}), bytes_of<int64_t>({-2}));
}

TEST(RankOrderSum, RefusesBool) { EXPECT_THROW(RankOrderSum(DType::kBool, 1), Error); }

TEST(RandomValues, AreFiniteAndDependOnTheSeed) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const Bytes values = random_values(dtype, 1000, 7);
    EXPECT_EQ(values, random_values(dtype, 1000, 7));
    EXPECT_NE(values, random_values(dtype, 1000, 8));
    for (size_t i = 0; i < 1000; ++i) {
      float x = 0;
      uint16_t bits = 0;
      if (dtype == DType::kF32) {
        std::memcpy(&x, values.data() + 4 * i, 4);
      } else {
        std::memcpy(&bits, values.data() + 2 * i, 2);
        x = dtype == DType::kF16 ? f16_to_float(bits) : bf16_to_float(bits);
      }
      ASSERT_TRUE(std::isfinite(x)) << dtype_name(dtype) << " " << i;
      ASSERT_NE(x, 0);
    }
  }
}

}  // namespace
}  // namespace netcl::app
