// Which of two timed transports a run takes, and the words with which it says so.
#include "apps/netcl_app/transport_times.h"

#include <gtest/gtest.h>

#include <string>

namespace netcl::app {
namespace {

TransportTimes times(double host_us, double p2p_us, double together) {
  TransportTimes out;
  out.staged_name = "host";
  out.shared_name = "p2p";
  out.bytes = 16 << 20;
  out.n_ranks = 2;
  out.staged = {host_us, true, ""};
  out.shared = {p2p_us, true, ""};
  out.kernels_together = together;
  return out;
}

void expect(const TransportTimes& given, bool shared, const std::string& why) {
  const TransportDecision got = decide(given);
  EXPECT_EQ(got.shared, shared) << got.why;
  EXPECT_EQ(got.why, why);
}

TEST(TransportTimes, TheFasterOneIsTaken) {
  expect(times(5200, 600, 1.02), true,
         "p2p: an all_reduce of 16 MiB over 2 devices takes host 5.2 ms and p2p 0.6 ms; kernels on "
         "all of them at once take 1.02 times as long as on one");
}

// Two GPUs of NVIDIA in one context: copies between them go at 0.8 GB/s.
TEST(TransportTimes, ASlowSharedContextIsNot) {
  expect(times(5200, 41000, 1.02), false,
         "host: an all_reduce of 16 MiB over 2 devices takes host 5.2 ms and p2p 41 ms");
}

TEST(TransportTimes, ALittleFasterIsNoGain) {
  EXPECT_FALSE(decide(times(1000, 950, 1)).shared);
  EXPECT_FALSE(decide(times(1000, 901, 1)).shared);
  EXPECT_TRUE(decide(times(1000, 899, 1)).shared);
}

TEST(TransportTimes, ContextsThatRunKernelsInTurnAreNoGain) {
  expect(times(5200, 600, 1.96), false,
         "host: an all_reduce of 16 MiB over 2 devices takes host 5.2 ms and p2p 0.6 ms, but in "
         "one context kernels on all of them at once take 1.96 times as long as on one");
}

TEST(TransportTimes, FastButWrongIsNotTaken) {
  TransportTimes given = times(5200, 600, 1);
  given.shared.correct = false;
  expect(given, false, "host: p2p adds up wrongly here");
}

TEST(TransportTimes, WhatCannotIsNotTaken) {
  TransportTimes given = times(5200, 0, 0);
  given.shared.error = "no context";
  expect(given, false, "host: p2p cannot: no context");
  given = times(0, 600, 1);
  given.staged.error = "no memory";
  expect(given, true,
         "p2p: host cannot: no memory; an all_reduce of 16 MiB over 2 devices takes 0.6 ms");
  given = times(0, 600, 1.9);
  given.staged = {400, false, ""};
  EXPECT_TRUE(decide(given).shared);
}

TEST(TransportTimes, AProbeThatFailedLeavesTheStagedOne) {
  TransportTimes given = times(0, 0, 0);
  given.error = "no answer within 60 s";
  expect(given, false, "host: p2p could not be timed beside it: no answer within 60 s");
}

TEST(TransportTimes, PassThroughJson) {
  TransportTimes given = times(5200, 600, 1.25);
  given.staged_name = "other";
  given.shared.correct = false;
  given.from_cache = true;
  const TransportTimes got = transport_times_from_json(to_json(given), "other", "p2p");
  EXPECT_EQ(to_json(got), to_json(given));
  EXPECT_EQ(got.staged.us, 5200);
  EXPECT_FALSE(got.shared.correct);
  EXPECT_TRUE(got.from_cache);
  given.shared.error = "no context";
  EXPECT_EQ(transport_times_from_json(to_json(given), "other", "p2p").shared.error, "no context");
  given.error = "killed";
  EXPECT_EQ(transport_times_from_json(to_json(given), "other", "p2p").error, "killed");
  EXPECT_THROW(transport_times_from_json(Json::object(), "other", "p2p"), Json::exception);
}

}  // namespace
}  // namespace netcl::app
