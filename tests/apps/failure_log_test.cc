#include "apps/netcl_app/failure_log.h"

#include <gtest/gtest.h>

namespace netcl::app {
namespace {

Failure failure(uint32_t place, double at) { return {place, "cpu:0", 5, "died", "stopped", at}; }

TEST(FailureLogTest, ThreeFailuresOnEndWithoutASnapshotAreEnough) {
  FailureLog log;
  Failure last;
  for (int i = 0; i < 2; ++i) {
    log.add(failure(1, i));
    EXPECT_TRUE(log.worth_going_on(10, &last));
  }
  log.add(failure(0, 2));  // another one's failures do not count
  EXPECT_TRUE(log.worth_going_on(10, &last));
  log.add(failure(1, 3));
  EXPECT_FALSE(log.worth_going_on(10, &last));
  EXPECT_EQ(last.place, 1u);
}

TEST(FailureLogTest, ASnapshotInBetweenBeginsTheCountAnew) {
  FailureLog log;
  Failure last;
  for (int64_t step = 0; step < 20; ++step) {
    log.add(failure(1, 0));
    EXPECT_TRUE(log.worth_going_on(step / 2, &last)) << step;
  }
}

TEST(FailureLogTest, SaysHowLongEachTook) {
  FailureLog log;
  log.add(failure(1, 1.0));
  log.add(failure(2, 1.5));
  log.recovered(2.0, "restarted");
  log.add(failure(0, 9.0));
  EXPECT_EQ(log.latest_recovery_ms(), 1000);
  const Json json = log.json();
  ASSERT_EQ(json.size(), 3u);
  EXPECT_EQ(json[0]["recovery_ms"], 1000);
  EXPECT_EQ(json[1]["recovery_ms"], 500);
  EXPECT_EQ(json[1]["action"], "restarted");
  EXPECT_TRUE(json[2]["recovery_ms"].is_null());
  EXPECT_EQ(json[2]["action"], "stopped");
}

}  // namespace
}  // namespace netcl::app
