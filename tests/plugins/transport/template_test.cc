// The transport that `netcl-app plugins new transport` writes, as its template stands: every
// collective, type and reduction against the oracle, and ranks that disagree, die or come late.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/plugins/transport/rank.h"

extern "C" netcl_rc netcl_plugin_open_v1(const netcl_host* host, netcl_call* call,
                                         netcl_plugin_api* out);

namespace netcl::testing {
namespace {

std::unique_ptr<plugin::Transport> open_template(const netcl_host* host) {
  netcl_call call;
  netcl_plugin_api api{};
  api.size = sizeof(api);
  const netcl_rc rc = netcl_plugin_open_v1(host, &call, &api);
  if (rc != NETCL_OK) throw Status(rc, call.text);
  return std::unique_ptr<plugin::Transport>(
      static_cast<plugin::Transport*>(&plugin::self(api.self)));
}

void on_template_ranks(uint32_t n_ranks, const std::function<void(Rank&)>& body,
                       uint64_t timeout_ms = 60'000) {
  TestDevice device;
  on_ranks_of(
      n_ranks,
      [&](std::shared_ptr<Segment> segment, uint32_t r) {
        return std::make_unique<Rank>(device, std::move(segment), r, open_template, timeout_ms);
      },
      body);
}

class TemplateMatrix : public ::testing::TestWithParam<uint32_t> {};

TEST_P(TemplateMatrix, EqualsTheRankOrderOracleBitForBit) {
  const uint32_t n_ranks = GetParam();
  ExpectedResults expected;
  on_template_ranks(n_ranks, [&](Rank& rank) {
    netcl_bucket bucket = rank.bucket(kMatrixBucketBytes);
    for (const CollectiveCase& c : collective_matrix(n_ranks, {0, 1, 2, 3, 16, 65, 4099}))
      run_case(rank, bucket, c, expected);
    rank.free(bucket);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, TemplateMatrix, ::testing::Values(1, 2, 3, 5));

TEST(Template, MoreThanAChunk) {
  ExpectedResults expected;
  on_template_ranks(3, [&](Rank& rank) {
    netcl_bucket bucket = rank.bucket(5'000'000);
    run_case(rank, bucket, {NETCL_ALL_REDUCE, NETCL_F32, NETCL_SUM, 1'000'003, 0, 1}, expected);
    run_case(rank, bucket, {NETCL_ALL_GATHER, NETCL_F16, 0, 1'000'003, 1, 3}, expected);
    run_case(rank, bucket, {NETCL_REDUCE_SCATTER, NETCL_I64, NETCL_SUM, 300'001, 0, 5}, expected);
    rank.wait(rank.post(Rank::barrier()));
    rank.free(bucket);
  });
}

TEST(Template, RanksThatDisagreeAreNamedAndTheGroupIsOver) {
  on_template_ranks(3, [&](Rank& rank) {
    netcl_bucket bucket = rank.bucket(64 * 1024);
    const uint64_t count = rank.rank() == 2 ? 999 : 9000;
    const Status s = status_of(
        [&] { rank.wait(rank.post(Rank::all_reduce(bucket, 0, count, NETCL_F32, NETCL_SUM))); });
    EXPECT_EQ(s.code, static_cast<netcl_rc>(NETCL_E_STATE)) << s.text;
    EXPECT_NE(s.text.find("999 elements"), std::string::npos) << s.text;
    EXPECT_NE(s.text.find("9000 elements"), std::string::npos) << s.text;
    EXPECT_EQ(status_of([&] { rank.post(Rank::barrier()); }).code,
              static_cast<netcl_rc>(NETCL_E_STATE));
    rank.free(bucket);
  });
}

TEST(Template, ALateRankEndsTheWait) {
  on_template_ranks(
      2,
      [&](Rank& rank) {
        if (rank.rank() == 1) return;
        const Status s = status_of([&] { rank.wait(rank.post(Rank::barrier("sync"))); });
        EXPECT_EQ(s.code, static_cast<netcl_rc>(NETCL_E_TIMEOUT)) << s.text;
        EXPECT_NE(s.text.find("\"sync\": rank 0 waited in vain for rank 1"), std::string::npos)
            << s.text;
      },
      200);
}

TEST(Template, AbortEndsTheWait) {
  on_template_ranks(2, [&](Rank& rank) {
    if (rank.rank() == 1) return;
    std::thread other([&] { rank.abort("enough"); });
    const Status s = status_of([&] { rank.wait(rank.post(Rank::barrier())); });
    other.join();
    EXPECT_EQ(s.code, static_cast<netcl_rc>(NETCL_E_CANCELLED)) << s.text;
    EXPECT_NE(s.text.find("enough"), std::string::npos) << s.text;
  });
}

TEST(Template, ADeadRankEndsTheWait) {
  const auto segment = Segment::create(2);
  TestDevice device;
  std::unique_ptr<Rank> survivor;
  std::thread other([&] { Rank gone(device, segment, 1, open_template, 60'000); });
  survivor = std::make_unique<Rank>(device, segment, 0, open_template, 60'000);
  other.join();
  std::thread supervisor([&] { segment->abort("rank 1 has died"); });
  const Status s = status_of([&] { survivor->wait(survivor->post(Rank::barrier())); });
  supervisor.join();
  EXPECT_EQ(s.code, static_cast<netcl_rc>(NETCL_E_PEER)) << s.text;
}

}  // namespace
}  // namespace netcl::testing
