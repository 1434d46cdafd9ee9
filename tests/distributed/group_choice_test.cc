// Which ranks stay in a group: who leaves, when it is not worth it, and who comes back.
#include "core/distributed/group_choice.h"

#include <gtest/gtest.h>

namespace netcl {
namespace {

// Ranks that take `per_row` seconds a row, 64 rows a step, in a group whose step takes
// `step_seconds`, of which the last `exposed` are sums.
GroupMeasure measure(const std::vector<double>& per_row, const std::vector<int64_t>& rows,
                     double step_seconds, double exposed) {
  GroupMeasure out;
  out.settled = true;
  out.step_seconds = step_seconds;
  out.exposed_seconds = exposed;
  out.batch_size = out.pass_size = 64;
  out.rows = rows;
  for (size_t i = 0; i < per_row.size(); ++i) {
    out.names.push_back("cpu:" + std::to_string(i));
    out.costs.push_back({{0, per_row[i]}, {}, true});
  }
  return out;
}

// A card that needs 10 ms alone, held up by a CPU: 37 ms together.
GroupMeasure held_up() { return measure({10e-3 / 64, 0.1}, {62, 2}, 37e-3, 27e-3); }

TEST(GroupChoiceTest, WhoHoldsTheOthersUpLeavesAndStaysAway) {
  GroupChoice choice({}, {});
  std::string note;
  const auto regroup = choice.look(held_up(), 1000, &note);
  ASSERT_TRUE(regroup);
  EXPECT_EQ(regroup->shares, (std::map<std::string, double>{{"cpu:0", 64}}));
  EXPECT_NE(regroup->note.find("without cpu:1"), std::string::npos) << regroup->note;
  EXPECT_NE(regroup->note.find("37 ms, 10 ms expected"), std::string::npos) << regroup->note;

  GroupChoice next(choice.departures(), {"cpu:0"});  // in the group without it
  GroupMeasure alone = measure({0}, {64}, 11e-3, 0);
  alone.settled = false;
  EXPECT_FALSE(next.look(alone, 990, &note));
  EXPECT_EQ(note, "");
  alone.settled = true;
  EXPECT_FALSE(next.look(alone, 980, &note));
  EXPECT_EQ(note,
            "cpu:1 stays out of the group: with it in the group a step takes 37 ms, without 11 ms");
  note.clear();
  EXPECT_FALSE(next.look(alone, 970, &note));
  EXPECT_EQ(note, "");  // said once
  ShardAccount account;
  next.complete(account);
  ASSERT_EQ(account.ranks.size(), 1u);
  EXPECT_EQ(account.ranks[0].name, "cpu:1");
  EXPECT_TRUE(account.ranks[0].left_out);
  EXPECT_NEAR(account.ranks[0].solo_samples_per_second, 10, 1e-9);
  EXPECT_NEAR(account.ranks[0].change_without, 37.0 / 11 - 1, 1e-9);
}

TEST(GroupChoiceTest, WithoutAGainItComesBackAndStays) {
  GroupChoice choice({}, {});
  std::string note;
  ASSERT_TRUE(choice.look(held_up(), 1000, &note));
  GroupChoice next(choice.departures(), {"cpu:0"});
  const auto back = next.look(measure({0}, {64}, 40e-3, 0), 980, &note);
  ASSERT_TRUE(back);
  ASSERT_EQ(back->shares.size(), 2u);
  EXPECT_NE(back->note.find("cpu:1 comes back"), std::string::npos) << back->note;
  // Its speed alone was 10 samples a second, the other's is 64 in 40 ms.
  EXPECT_NEAR(back->shares.at("cpu:1") / back->shares.at("cpu:0"), 10 * 0.04 / 64, 1e-9);
  GroupChoice last(next.departures(), {"cpu:0", "cpu:1"});
  EXPECT_FALSE(last.look(held_up(), 900, &note));  // 37 ms, and 40 without
  ShardAccount account;
  last.complete(account);
  EXPECT_TRUE(account.ranks.empty());
}

TEST(GroupChoiceTest, NobodyLeavesForLittle) {
  std::string note;
  // Too few steps are left.
  EXPECT_FALSE(GroupChoice({}, {}).look(held_up(), 30, &note));
  // Both are needed.
  EXPECT_FALSE(
      GroupChoice({}, {}).look(measure({1e-3, 1e-3}, {32, 32}, 40e-3, 8e-3), 1'000'000, &note));
  // What is added up stays where two are left.
  EXPECT_FALSE(
      GroupChoice({}, {}).look(measure({1e-3, 1e-3, 0.1}, {32, 32, 0}, 40e-3, 8e-3), 1000, &note));
  // The other one cannot hold the batch.
  GroupMeasure full = held_up();
  full.costs[0].limits.max_rows = 63;
  EXPECT_FALSE(GroupChoice({}, {}).look(full, 1000, &note));
  EXPECT_EQ(note, "");
}

TEST(GroupChoiceTest, OneWithoutRowsIsTriedInALongRun) {
  std::string note;
  const auto regroup =
      GroupChoice({}, {}).look(measure({1e-3, 1e-3, 0.1}, {32, 32, 0}, 40e-3, 8e-3), 10'000, &note);
  ASSERT_TRUE(regroup);
  EXPECT_EQ(regroup->shares, (std::map<std::string, double>{{"cpu:0", 32}, {"cpu:1", 32}}));
}

TEST(GroupChoiceTest, WhoHasNoRowsIsTriedFirstWhereNothingElseExplainsTheTime) {
  // Of three the second holds the others up for 8 ms without any rows.
  GroupChoice choice({}, {});
  std::string note;
  const auto regroup =
      choice.look(measure({1e-5, 8e-3, 1e-5}, {32, 0, 32}, 8.3e-3, 8e-3), 600, &note);
  ASSERT_TRUE(regroup);
  EXPECT_EQ(regroup->shares, (std::map<std::string, double>{{"cpu:0", 32}, {"cpu:2", 32}}));
}

TEST(GroupChoiceTest, WhoWasLeftWithoutRowsMayBeTheOneThatStays) {
  GroupMeasure now = measure({1e-5, 1e-4}, {0, 64}, 8.3e-3, 1e-3);
  now.costs[0].takes_part = false;
  now.costs[1].line.fixed = 7e-3;
  std::string note;
  const auto regroup = GroupChoice({}, {}).look(now, 600, &note);
  ASSERT_TRUE(regroup);
  EXPECT_EQ(regroup->shares, (std::map<std::string, double>{{"cpu:0", 64}}));
}

TEST(GroupChoiceTest, OnceMoreWhereTheGroupHasBecomeSlowerThanWhatWasMeasured) {
  GroupChoice choice({}, {});
  std::string note;
  ASSERT_TRUE(choice.look(held_up(), 1000, &note));
  ASSERT_TRUE(choice.look(measure({0}, {64}, 40e-3, 0), 980, &note));  // back
  GroupMeasure slower = held_up();
  slower.step_seconds = 45e-3;
  ASSERT_TRUE(choice.look(slower, 900, &note));                        // leaves again
  ASSERT_TRUE(choice.look(measure({0}, {64}, 50e-3, 0), 880, &note));  // back again
  slower.step_seconds = 90e-3;
  EXPECT_FALSE(choice.look(slower, 800, &note));  // that was the last time
}

TEST(GroupChoiceTest, WhoTakesOverIsNotAway) {
  GroupChoice choice({}, {});
  std::string note;
  ASSERT_TRUE(choice.look(held_up(), 1000, &note));
  GroupChoice alone(choice.departures(), {"cpu:1"});  // the other one was lost
  EXPECT_FALSE(alone.look(measure({0}, {64}, 50e-3, 0), 900, &note));
  ShardAccount account;
  alone.complete(account);
  EXPECT_TRUE(account.ranks.empty());
}

}  // namespace
}  // namespace netcl
