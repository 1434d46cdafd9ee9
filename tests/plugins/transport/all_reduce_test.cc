// The host transport's all_reduce against an oracle that adds in rank order, bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/plugins/transport/rank.h"

namespace netcl::testing {
namespace {

constexpr uint64_t kChunk = 4096;  // bytes; small, so that medium counts have many chunks

uint32_t quiet(float v) {
  uint32_t bits = 0;
  if (std::isnan(v)) return 0x7fc00000u;
  std::memcpy(&bits, &v, 4);
  return bits;
}

// One element of the result, written as plainly as can be.
uint32_t oracle(uint32_t dtype, uint32_t op, const std::vector<uint32_t>& in) {
  if (dtype == NETCL_F32) {
    std::vector<float> v(in.size());
    std::memcpy(v.data(), in.data(), in.size() * 4);
    volatile float acc = v[0];
    for (size_t r = 1; r < v.size(); ++r) {
      const float a = acc, b = v[r];
      if (op == NETCL_SUM) acc = a + b;
      if (op == NETCL_PROD) acc = a * b;
      if (op == NETCL_MAX) acc = std::isnan(b) || b > a ? b : a;
      if (op == NETCL_MIN) acc = std::isnan(b) || b < a ? b : a;
    }
    return quiet(acc);
  }
  uint32_t acc = in[0];
  for (size_t r = 1; r < in.size(); ++r) {
    const auto a = static_cast<int32_t>(acc), b = static_cast<int32_t>(in[r]);
    if (op == NETCL_SUM) acc += in[r];
    if (op == NETCL_PROD) acc *= in[r];
    if (op == NETCL_MAX) acc = static_cast<uint32_t>(std::max(a, b));
    if (op == NETCL_MIN) acc = static_cast<uint32_t>(std::min(a, b));
  }
  return acc;
}

// Contributions of one rank; every 13th element of f32 is a value that arithmetic trips over.
std::vector<uint32_t> contribution(uint32_t dtype, uint32_t rank, size_t count, uint32_t seed) {
  std::mt19937 random(seed * 977 + rank);
  std::vector<uint32_t> v(count);
  const uint32_t special[] = {0x7fc00000u, 0xff800000u, 0x7f800000u, 0x80000000u, 0x00000000u,
                              0x00000001u, 0x807fffffu, 0x7f7fffffu, 0xffc12345u, 0x7fa00001u};
  for (size_t i = 0; i < count; ++i) {
    const uint32_t word = static_cast<uint32_t>(random());
    v[i] = word;
    if (dtype != NETCL_F32) continue;
    const float x =
        std::ldexp(static_cast<float>(static_cast<int32_t>(word)), static_cast<int>(word % 9) - 32);
    std::memcpy(&v[i], &x, 4);
    if (i % 13 == 5) v[i] = special[word % 10];
  }
  return v;
}

// Keeps a thread busy for a number of rounds that depends on nothing but its arguments.
void spin(uint32_t rounds) {
  volatile uint32_t x = rounds;
  for (uint32_t i = 0; i < rounds; ++i) x = x * 1664525u + 1013904223u;
}

struct Case {
  uint32_t dtype, op;
  uint64_t count, offset;
};

void check_case(Rank& rank, const netcl_bucket& bucket, const Case& c, uint32_t seed) {
  const auto mine = contribution(c.dtype, rank.rank(), c.count, seed);
  spin((seed * 2654435761u >> (rank.rank() * 3)) % 50000);
  netcl_coll coll = Rank::all_reduce(bucket, c.offset * 4, c.count, c.dtype, c.op);
  cl_event ready = rank.write(bucket, c.offset * 4, mine.data(), c.count * 4);
  coll.ready = ready;
  const uint64_t ticket = rank.post(coll);
  rank.wait(ticket);
  if (ready != nullptr) clReleaseEvent(ready);
  std::vector<uint32_t> got(c.count);
  rank.read(bucket, c.offset * 4, got.data(), c.count * 4);
  std::vector<std::vector<uint32_t>> all;
  for (uint32_t r = 0; r < rank.n_ranks(); ++r)
    all.push_back(contribution(c.dtype, r, c.count, seed));
  std::vector<uint32_t> in(rank.n_ranks());
  for (size_t i = 0; i < c.count; ++i) {
    for (uint32_t r = 0; r < rank.n_ranks(); ++r) in[r] = all[r][i];
    const uint32_t want = oracle(c.dtype, c.op, in);
    if (got[i] != want) {
      ADD_FAILURE() << "dtype " << c.dtype << " op " << c.op << " count " << c.count << " ranks "
                    << rank.n_ranks() << " rank " << rank.rank() << " element " << i << ": got 0x"
                    << std::hex << got[i] << ", want 0x" << want;
      return;
    }
  }
}

class AllReduce : public ::testing::TestWithParam<std::tuple<uint32_t, bool>> {};

TEST_P(AllReduce, EqualsTheRankOrderOracleBitForBit) {
  const auto [n_ranks, zero_copy] = GetParam();
  TestDevice device;
  on_ranks(device, n_ranks, staged(kChunk, zero_copy), 60'000, [zc = zero_copy](Rank& rank) {
    EXPECT_EQ(rank.group().way() == host_transport::Way::kZeroCopy, zc);
    netcl_bucket small = rank.bucket(32 * 1024);
    netcl_bucket large = rank.bucket(1 << 20);
    uint32_t seed = 1;
    for (const netcl_bucket* bucket : {&small, &large}) {
      for (const uint64_t count : {0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 1023, 1024, 1025, 7001}) {
        for (const uint32_t dtype : {NETCL_F32, NETCL_I32}) {
          for (const uint32_t op : {NETCL_SUM, NETCL_MAX, NETCL_MIN, NETCL_PROD}) {
            check_case(rank, *bucket, {dtype, op, count, seed % 3 * 17}, seed);
            ++seed;
          }
        }
      }
    }
    rank.free(small);
    rank.free(large);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, AllReduce,
                         ::testing::Combine(::testing::Values(1, 2, 3, 5, 8), ::testing::Bool()),
                         [](const auto& param) {
                           return std::to_string(std::get<0>(param.param)) + "ranks" +
                                  (std::get<1>(param.param) ? "ZeroCopy" : "Staging");
                         });

TEST(AllReduceLarge, EqualsTheOracleWithDefaultChunks) {
  TestDevice device;
  for (const bool zero_copy : {true, false}) {
    on_ranks(device, 3, staged(0, zero_copy), 60'000, [](Rank& rank) {
      netcl_bucket bucket = rank.bucket(1'000'003 * 4);
      check_case(rank, bucket, {NETCL_F32, NETCL_SUM, 1'000'003, 0}, 7);
      check_case(rank, bucket, {NETCL_I32, NETCL_MAX, 999'999, 3}, 8);
    });
  }
}

TEST(AllReduceRepeated, HundredInARowWithoutWaitingBetween) {
  TestDevice device;
  for (const bool zero_copy : {true, false}) {
    on_ranks(device, 3, staged(kChunk, zero_copy), 60'000, [](Rank& rank) {
      netcl_bucket small = rank.bucket(1024);
      netcl_bucket large = rank.bucket(128 * 1024);
      // The sum over the ranks of rank+1 is 6; each round multiplies by the number of ranks.
      for (const netcl_bucket* bucket : {&small, &large}) {
        const uint64_t count = bucket->bytes / 4;
        for (int32_t round = 0; round < 100; ++round) {
          const std::vector<int32_t> mine(count, static_cast<int32_t>(rank.rank() + 1) + round);
          netcl_coll coll = Rank::all_reduce(*bucket, 0, count, NETCL_I32, NETCL_SUM);
          cl_event ready = rank.write(*bucket, 0, mine.data(), count * 4);
          coll.ready = ready;
          spin(static_cast<uint32_t>(round) * 7919u * (rank.rank() + 1) % 30000u);
          rank.wait(rank.post(coll));
          clReleaseEvent(ready);
          std::vector<int32_t> got(count);
          rank.read(*bucket, 0, got.data(), count * 4);
          ASSERT_EQ(got, std::vector<int32_t>(count, 6 + 3 * round)) << "round " << round;
        }
      }
      // Posted in one go: they complete in order, and the last wait covers all.
      const uint64_t count = large.bytes / 4;
      const std::vector<int32_t> mine(count, static_cast<int32_t>(rank.rank() + 1));
      cl_event ready = rank.write(large, 0, mine.data(), count * 4);
      uint64_t last = 0;
      for (uint64_t i = 0; i < 100; ++i) {
        netcl_coll coll = Rank::all_reduce(large, i * 1280, 320, NETCL_I32, NETCL_SUM);
        coll.ready = ready;
        last = rank.post(coll);
      }
      rank.wait(last);
      clReleaseEvent(ready);
      std::vector<int32_t> got(count);
      rank.read(large, 0, got.data(), count * 4);
      for (size_t i = 0; i < 32000; ++i) ASSERT_EQ(got[i], 6) << i;
    });
  }
}

}  // namespace
}  // namespace netcl::testing
