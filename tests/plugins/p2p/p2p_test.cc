// The p2p transport: the same collectives against the same oracle as the host transport's, with
// ranks on threads of one context; mistakes and deaths among them.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "plugins/transport/p2p/p2p_transport.h"
#include "tests/plugins/transport/rank.h"

namespace netcl::testing {
namespace {

namespace fs = std::filesystem;

void on_p2p_ranks(uint32_t n_ranks, const std::function<void(Rank&)>& body,
                  uint64_t timeout_ms = 60'000) {
  TestDevice device;
  const std::string kernels = reduce_kernels_dir();
  on_ranks_of(
      n_ranks,
      [&](std::shared_ptr<Segment> segment, uint32_t r) {
        return std::make_unique<Rank>(
            device, std::move(segment), r,
            [&](const netcl_host* host) {
              return std::make_unique<p2p_transport::P2pTransport>(host, kernels);
            },
            timeout_ms);
      },
      body);
}

class P2pMatrix : public ::testing::TestWithParam<uint32_t> {};

TEST_P(P2pMatrix, EqualsTheRankOrderOracleBitForBit) {
  const uint32_t n_ranks = GetParam();
  const uint64_t every = n_ranks == 3 ? 1 : 4;
  ExpectedResults expected;
  on_p2p_ranks(n_ranks, [&](Rank& rank) {
    const netcl_bucket bucket = rank.bucket(100 * 1024);
    uint64_t seed = 0;
    for (CollectiveCase c : collective_combinations()) {
      // Each combination is a kernel to build: only three ranks meet them all.
      if (n_ranks != 3 && c.dtype != NETCL_F32) continue;
      for (const uint64_t count : {0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 4099}) {
        c.seed = ++seed;
        if (mixed(c.seed + n_ranks) % every != 0) continue;
        c.count = count;
        c.offset = mixed(c.seed) % 3 * 17;
        run_case(rank, bucket, c, expected);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, P2pMatrix, ::testing::Values(1, 2, 3, 4, 8));

TEST(P2pLarge, AMillionAndThreeElements) {
  ExpectedResults expected;
  on_p2p_ranks(3, [&](Rank& rank) {
    const netcl_bucket bucket = rank.bucket(5'000'000);
    run_case(rank, bucket, {NETCL_ALL_REDUCE, NETCL_F32, NETCL_SUM, 1'000'003, 0, 1}, expected);
    run_case(rank, bucket, {NETCL_ALL_GATHER, NETCL_F16, 0, 1'000'003, 1, 3}, expected);
  });
}

std::string failure_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Status& e) {
    return e.text;
  }
  return "nothing failed";
}

TEST(P2pFaults, CollectivesThatDifferNameBothSides) {
  on_p2p_ranks(2, [](Rank& rank) {
    const netcl_bucket bucket = rank.bucket(1024);
    const std::string text = failure_of([&] {
      rank.wait(rank.post(
          Rank::all_reduce(bucket, 0, 10 + rank.rank(), NETCL_F32, NETCL_SUM, "gradients")));
    });
    EXPECT_NE(text.find("rank 0 posts all_reduce \"gradients\""), std::string::npos) << text;
    EXPECT_NE(text.find("10 elements"), std::string::npos) << text;
    EXPECT_NE(text.find("11 elements"), std::string::npos) << text;
  });
}

TEST(P2pFaults, ALateRankIsNamed) {
  std::atomic<int> given_up{0};
  on_p2p_ranks(
      3,
      [&](Rank& rank) {
        const netcl_bucket bucket = rank.bucket(1024);
        if (rank.rank() == 1) {  // never posts
          while (given_up.load() < 2) std::this_thread::yield();
          return;
        }
        const std::string text = failure_of(
            [&] { rank.wait(rank.post(Rank::all_reduce(bucket, 0, 4, NETCL_F32, NETCL_SUM))); });
        ++given_up;
        EXPECT_NE(text.find("waited 200 ms for rank 1"), std::string::npos) << text;
      },
      200);
}

TEST(P2pFaults, ARankThatLeavesEndsTheWaitOfTheOthers) {
  on_p2p_ranks(2, [](Rank& rank) {
    const netcl_bucket bucket = rank.bucket(1024);
    if (rank.rank() == 1) return;  // closes its group
    const std::string text = failure_of(
        [&] { rank.wait(rank.post(Rank::all_reduce(bucket, 0, 4, NETCL_F32, NETCL_SUM))); });
    EXPECT_NE(text.find("rank 1 has left the group"), std::string::npos) << text;
  });
}

TEST(P2pFaults, AbortEndsWaits) {
  on_p2p_ranks(2, [](Rank& rank) {
    const netcl_bucket bucket = rank.bucket(1024);
    if (rank.rank() == 1) return rank.abort("enough");
    const std::string text = failure_of(
        [&] { rank.wait(rank.post(Rank::all_reduce(bucket, 0, 4, NETCL_F32, NETCL_SUM))); });
    EXPECT_TRUE(text.find("enough") != std::string::npos ||
                text.find("has left the group") != std::string::npos)
        << text;
  });
}

TEST(P2pFaults, BadCollectivesAreRefused) {
  on_p2p_ranks(1, [](Rank& rank) {
    const netcl_bucket bucket = rank.bucket(64);
    netcl_coll c = Rank::all_reduce(bucket, 0, 17, NETCL_F32, NETCL_SUM);
    EXPECT_NE(failure_of([&] { rank.post(c); }).find("do not lie in a bucket"), std::string::npos);
    c = Rank::all_reduce(bucket, 0, 4, NETCL_F32, 9);
    EXPECT_NE(failure_of([&] { rank.post(c); }).find("reduction 9"), std::string::npos);
    const uint64_t counts[] = {3};
    c = Rank::all_reduce(bucket, 0, 4, NETCL_F32, NETCL_SUM);
    c.counts = counts;
    EXPECT_NE(failure_of([&] { rank.post(c); }).find("do not add up to 4"), std::string::npos);
    EXPECT_NE(failure_of([&] { rank.wait(99); }).find("ticket 99"), std::string::npos);
  });
}

TEST(P2pAccept, NamesTheFirstPair) {
  const netcl_host host = make_fake_host();
  p2p_transport::P2pTransport transport(&host);
  netcl_member members[3] = {{0, 0, 0, 0}, {1, 0, 0, 0}, {2, 0, 1, 1}};
  netcl_group_spec spec{};
  spec.size = sizeof(spec);
  spec.n_ranks = 3;
  spec.members = members;
  netcl_call call;
  const auto* api =
      static_cast<const netcl_transport_api*>(transport.query(NETCL_TRANSPORT_INTERFACE));
  const auto self = reinterpret_cast<netcl_plugin*>(static_cast<plugin::Plugin*>(&transport));
  EXPECT_EQ(api->accept(self, &call, &spec), NETCL_DECLINE);
  EXPECT_NE(call.text.find("ranks 0 and 2 are in different processes"), std::string::npos);
}

}  // namespace
}  // namespace netcl::testing
