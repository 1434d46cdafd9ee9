// The summary of a trace: what of the communication is exposed, and what is waiting for a rank.
#include "apps/netcl_app/trace_file.h"

#include <gtest/gtest.h>

namespace netcl::app {
namespace {

constexpr int kCompute = static_cast<int>(TraceTrack::kCompute);
constexpr int kTransport = static_cast<int>(TraceTrack::kTransport);
constexpr uint64_t kMs = 1'000'000;

Json kernel(uint64_t begin_ms, uint64_t end_ms) {
  return {kCompute, "kernel", "kernel", 1, begin_ms * kMs, end_ms * kMs, Json::object()};
}
// From this rank's data ready to the result.
Json collective(uint64_t number, uint64_t ready_ms, uint64_t end_ms) {
  return {kTransport,
          "all_reduce",
          "collective",
          1,
          ready_ms * kMs,
          end_ms * kMs,
          {{"number", number}, {"late", 0}, {"posted_ns", 0}}};
}
Json summary_of(const std::vector<Json>& ranks) {
  TraceFile file;
  for (size_t r = 0; r < ranks.size(); ++r)
    file.add(static_cast<uint32_t>(r), {{"accuracy_ns", 0}, {"events", ranks[r]}});
  return file.summary();
}

TEST(TraceSummary, TheLastBucketAloneIsExposed) {
  const Json rank = Json::array({kernel(0, 10), collective(0, 4, 6), collective(1, 10, 13)});
  const Json summary = summary_of({rank, rank});
  for (const Json& row : summary.at("ranks")) {
    EXPECT_DOUBLE_EQ(row.at("communication_ms").get<double>(), 5);
    EXPECT_DOUBLE_EQ(row.at("exposed_ms").get<double>(), 3);
    EXPECT_DOUBLE_EQ(row.at("exposed_percent").get<double>(), 60);
    EXPECT_DOUBLE_EQ(row.at("wait_for_ranks_ms").get<double>(), 0);
  }
}

TEST(TraceSummary, ARankThatIsEarlyWaitsAndCommunicatesLess) {
  // Rank 1 is done with both buckets at 10, rank 0 yields them at 20 and 30: while the first one is
  // reduced, rank 1 waits for the second anyway.
  const Json early = Json::array({kernel(0, 10), collective(0, 5, 22), collective(1, 10, 33)});
  const Json late = Json::array({kernel(0, 30), collective(0, 20, 22), collective(1, 30, 33)});
  const Json rows = summary_of({late, early}).at("ranks");
  for (const Json& row : rows) {
    EXPECT_DOUBLE_EQ(row.at("communication_ms").get<double>(), 5);
    EXPECT_DOUBLE_EQ(row.at("exposed_ms").get<double>(), 3);
  }
  EXPECT_DOUBLE_EQ(rows[0].at("wait_for_ranks_ms").get<double>(), 0);
  EXPECT_DOUBLE_EQ(rows[1].at("wait_for_ranks_ms").get<double>(), 25);
}

TEST(TraceSummary, WithoutOverlapAllIsExposed) {
  const Json rank = Json::array({kernel(0, 10), collective(0, 10, 14)});
  EXPECT_DOUBLE_EQ(summary_of({rank, rank}).at("exposed_percent").get<double>(), 100);
}

}  // namespace
}  // namespace netcl::app
