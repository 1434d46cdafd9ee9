// Every collective, type, reduction, size and way of the host transport against an oracle that
// works in rank order, bit for bit, with ranks that come in any order.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "core/verify/collective_oracle.h"
#include "tests/plugins/transport/rank.h"

namespace netcl::testing {
namespace {

using host_transport::Options;
using host_transport::Way;

constexpr uint64_t kChunk = 4096;  // bytes; small, so that medium counts have many chunks

// How the ranks of a group stage.
enum class Mode { kZeroCopy, kRegistered, kPlainThreads, kMixed, kOnDevices };

Options options_of(Mode mode, uint32_t rank, uint64_t chunk_bytes) {
  Options o;
  o.chunk_bytes = chunk_bytes;
  o.way = Way::kZeroCopy;
  o.stream = mode == Mode::kZeroCopy;  // whatever the size
  if (mode == Mode::kRegistered) o.way = Way::kRegistered;
  if (mode == Mode::kOnDevices) {
    o.way = rank % 2 == 0 ? Way::kRegistered : Way::kPlain;
    o.on_devices = true;
    o.kernels = reduce_kernels_dir();
  }
  if (mode == Mode::kPlainThreads || (mode == Mode::kMixed && rank % 2 == 0)) {
    o.way = Way::kPlain;
    o.reducers = 2;
  }
  return o;
}

class Matrix : public ::testing::TestWithParam<std::tuple<uint32_t, Mode>> {};

TEST_P(Matrix, EqualsTheRankOrderOracleBitForBit) {
  const auto [n_ranks, mode] = GetParam();
  TestDevice device;
  ExpectedResults expected;
  // Three ranks meet every case, the others an even choice of them.
  const uint64_t every = n_ranks == 3 ? 1 : 5;
  on_ranks(
      device, n_ranks, [mode = mode](uint32_t r) { return options_of(mode, r, kChunk); }, 60'000,
      [&, n = n_ranks, mode = mode](Rank& rank) {
        const bool on_devices = mode == Mode::kOnDevices && n > 1;
        ASSERT_EQ(rank.host_group().reduction(), on_devices ? "the devices reduce" : "");
        netcl_bucket small = rank.bucket(40 * 1024);
        netcl_bucket large = rank.bucket(100 * 1024);
        uint64_t seed = 0;
        for (const netcl_bucket* bucket : {&small, &large}) {
          for (CollectiveCase c : collective_combinations()) {
            const uint64_t chunk = kChunk / size_of_dtype(c.dtype);
            for (const uint64_t count :
                 {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{3}, uint64_t{15}, uint64_t{16},
                  uint64_t{17}, uint64_t{63}, uint64_t{64}, uint64_t{65}, chunk - 1, chunk,
                  chunk + 1, 4 * chunk + 5}) {
              c.seed = ++seed;
              if (mixed(c.seed + n) % every != 0) continue;
              c.count = count;
              c.offset = mixed(c.seed) % 3 * 17;
              run_case(rank, *bucket, c, expected);
            }
          }
        }
        rank.free(small);
        rank.free(large);
      });
}

std::string mode_name(Mode mode) {
  switch (mode) {
    case Mode::kZeroCopy:
      return "ZeroCopy";
    case Mode::kRegistered:
      return "Registered";
    case Mode::kPlainThreads:
      return "PlainThreads";
    case Mode::kOnDevices:
      return "OnDevices";
    default:
      return "Mixed";
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Matrix,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4, 5, 7, 8),
                                            ::testing::Values(Mode::kZeroCopy, Mode::kRegistered,
                                                              Mode::kPlainThreads, Mode::kMixed,
                                                              Mode::kOnDevices)),
                         [](const auto& param) {
                           return std::to_string(std::get<0>(param.param)) + "ranks" +
                                  mode_name(std::get<1>(param.param));
                         });

void run_large(Mode mode, uint32_t n_ranks, uint64_t chunk_bytes,
               const std::vector<CollectiveCase>& cases) {
  TestDevice device;
  ExpectedResults expected;
  uint64_t bytes = 0;
  for (const CollectiveCase& c : cases) {
    bytes = std::max(bytes, (c.offset + c.count) * size_of_dtype(c.dtype));
  }
  on_ranks(
      device, n_ranks, [&](uint32_t r) { return options_of(mode, r, chunk_bytes); }, 60'000,
      [&](Rank& rank) {
        const netcl_bucket bucket = rank.bucket(bytes);
        for (const CollectiveCase& c : cases) run_case(rank, bucket, c, expected);
      });
}

TEST(Large, AMillionAndThreeElements) {
  constexpr uint64_t kMillion = 1'000'003;
  const std::vector<CollectiveCase> cases = {
      {NETCL_ALL_REDUCE, NETCL_F32, NETCL_SUM, kMillion, 0, 1},
      {NETCL_REDUCE_SCATTER, NETCL_BF16, NETCL_MEAN, kMillion, 3, 2},
      {NETCL_ALL_GATHER, NETCL_F16, 0, kMillion, 1, 3},
      {NETCL_BROADCAST, NETCL_F32, 0, kMillion, 2, 4},
      {NETCL_ALL_REDUCE, NETCL_I64, NETCL_MAX, kMillion / 2, 5, 5},
  };
  // The default chunk, and one that threads share.
  run_large(Mode::kZeroCopy, 3, 0, cases);
  run_large(Mode::kMixed, 2, 1 << 20, cases);
  run_large(Mode::kOnDevices, 2, 0, cases);
}

TEST(Large, SixteenMebiElementsAndOne) {
  run_large(Mode::kZeroCopy, 2, 0, {{NETCL_ALL_REDUCE, NETCL_F32, NETCL_SUM, (16u << 20) + 1}});
}

TEST(SmallMessage, InALargeBucketOfCopyingRanks) {
  // One wait instead of two; the larger ones before and after use the same bucket.
  std::vector<CollectiveCase> cases;
  for (uint64_t i = 1; i <= 60; ++i) {
    cases.push_back({i % 3 == 0 ? NETCL_ALL_GATHER : NETCL_ALL_REDUCE, NETCL_F32, NETCL_SUM,
                     i % 4 == 0 ? uint64_t{40'000} : i * 7, i, i});
  }
  run_large(Mode::kRegistered, 4, kChunk, cases);
  run_large(Mode::kMixed, 4, kChunk, cases);
  run_large(Mode::kOnDevices, 4, kChunk, cases);
}

// What two cards do when their group opens: both ways must give the same bits, the faster is kept.
TEST(OpeningAGroup, TriesWhetherTheDevicesReduce) {
  for (const uint32_t n_ranks : {2u, 3u}) {
    TestDevice device;
    device.is_cpu = false;
    Options options = staged(0, false);
    options.kernels = reduce_kernels_dir();
    std::vector<std::string> choices(n_ranks);
    ExpectedResults expected;
    on_ranks(device, n_ranks, options, 60'000, [&](Rank& rank) {
      choices[rank.rank()] = rank.host_group().reduction();
      const netcl_bucket bucket = rank.bucket(200'000);
      for (uint64_t seed = 1; seed <= 4; ++seed) {
        run_case(rank, bucket, {NETCL_ALL_REDUCE, NETCL_F32, NETCL_SUM, 50'000, 0, seed}, expected);
      }
    });
    EXPECT_EQ(choices[0], choices[1]);
    EXPECT_EQ(choices[0].find("other bits"), std::string::npos) << choices[0];
    EXPECT_EQ(choices[0].find("8 MiB take") != std::string::npos, n_ranks == 2) << choices[0];
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
          spin(static_cast<uint64_t>(round) * 7919u * (rank.rank() + 1) % 30'000u);
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
