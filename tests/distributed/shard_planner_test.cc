// Shares by measured speed, on simulated ranks: how fast a good plan is found, that it stays under
// noise, that it follows a change of speed, who is left out, memory, multiples.
#include "core/distributed/shard_planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "core/base/error.h"

namespace netcl {
namespace {

using Rows = std::vector<int64_t>;

// Ranks with known costs that train: it feeds the planner as the training loop does, one step late.
class Group {
 public:
  Group(std::vector<CostLine> costs, int64_t batch, const std::string& shard = "auto",
        std::vector<RankLimits> limits = {}, double noise = 0, uint32_t seed = 1)
      : costs_(std::move(costs)),
        batch_(batch),
        noise_(noise),
        random_(seed),
        plan_(shard, costs_.size()),
        planner_(options(std::move(limits)), plan_) {}

  // Seconds of one step on top of the slowest rank's: sums, by the rows of the ranks.
  std::function<double(const Rows&)> extra = [](const Rows&) { return 0.001; };

  void set_cost(size_t rank, CostLine cost) { costs_[rank] = cost; }

  // Makes steps; returns their mean seconds.
  double run(int steps) {
    double total = 0;
    for (int i = 0; i < steps; ++i) total += step(batch_);
    return total / steps;
  }

  double step(int64_t batch) {
    const Rows rows = plan_.counts(batch);
    std::vector<StepTime> times;
    double longest = 0;
    for (size_t r = 0; r < costs_.size(); ++r) {
      const double busy =
          costs_[r].at(static_cast<double>(rows[r])) * std::exp(noise_ * normal_(random_));
      times.push_back({rows[r], rows[r] > 0 ? busy : 1e-5, 0});
      longest = std::max(longest, busy);
    }
    const double seconds = longest + extra(rows);
    for (StepTime& time : times) time.step_seconds = steps_ == 0 ? 0 : seconds;
    ++steps_;
    if (!last_.empty()) {
      if (const auto change = planner_.observe(last_)) {
        if (!change->note.empty()) notes_.push_back(change->note);
        if (!change->weights.empty()) {
          plan_.set_weights(change->weights);
          changed_at_.push_back(steps_);
        }
      }
    }
    last_ = times;
    return seconds;
  }

  Rows rows() const { return plan_.counts(batch_); }
  const std::vector<int>& changed_at() const { return changed_at_; }
  const std::vector<std::string>& notes() const { return notes_; }
  bool noted(const std::string& text) const {
    return std::any_of(notes_.begin(), notes_.end(), [&](const std::string& note) {
      return note.find(text) != std::string::npos;
    });
  }
  ShardAccount account() const { return planner_.account(); }

 private:
  ShardPlannerOptions options(std::vector<RankLimits> limits) const {
    ShardPlannerOptions out;
    out.batch_size = batch_;
    for (size_t r = 0; r < costs_.size(); ++r) out.names.push_back("cpu:" + std::to_string(r));
    out.limits = std::move(limits);
    out.limits.resize(costs_.size());
    return out;
  }

  std::vector<CostLine> costs_;
  const int64_t batch_;
  const double noise_;
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
  ShardPlan plan_;
  ShardPlanner planner_;
  std::vector<StepTime> last_;
  std::vector<int> changed_at_;
  std::vector<std::string> notes_;
  int steps_ = 0;
};

// Seconds of a step at the sum of the ranks' speeds.
double ideal(const std::vector<CostLine>& costs, int64_t batch) {
  double speed = 0;
  for (const CostLine& cost : costs) speed += 1 / cost.at(static_cast<double>(batch));
  return 1 / speed;
}

TEST(ShardPlannerTest, ReachesTheSumOfTheSpeedsWithinTenSteps) {
  for (const std::vector<double>& slow :
       std::vector<std::vector<double>>{{1, 1}, {1, 2}, {1, 2, 4}, {1, 10}, {1, 3, 3, 9}}) {
    std::vector<CostLine> costs;
    for (const double s : slow) costs.push_back({0, s * 2e-4});
    Group group(costs, 256);
    group.run(10);
    const double seconds = group.run(90);
    EXPECT_LE(0.95 * (seconds - 0.001), ideal(costs, 256)) << slow.size() << " ranks";
  }
}

TEST(ShardPlannerTest, TheSecondPlanKnowsTheFixedCosts) {
  Group group({{0.010, 1e-4}, {0, 4e-4}}, 256);  // 10 ms + 0.1 ms n = 0.4 ms (256 - n)
  group.run(12);
  EXPECT_NEAR(static_cast<double>(group.rows()[0]), 184.8, 1.5);
  const std::vector<int> changes = group.changed_at();
  ASSERT_FALSE(changes.empty());
  EXPECT_LE(changes.back(), 10);
  const ShardAccount account = group.account();
  EXPECT_NEAR(account.ranks[0].solo_samples_per_second, 256 / 0.0356, 200);
  EXPECT_NEAR(account.ranks[1].solo_samples_per_second, 2500, 25);
}

TEST(ShardPlannerTest, AFixedPlanStaysAndIsMeasured) {
  for (const char* shard : {"even", "3,1"}) {
    Group group({{0, 1e-4}, {0, 3e-4}}, 64, shard);
    const Rows before = group.rows();
    group.run(200);
    EXPECT_EQ(group.rows(), before) << shard;
    EXPECT_TRUE(group.notes().empty());
    const ShardAccount account = group.account();
    EXPECT_NEAR(account.ranks[0].solo_samples_per_second, 10000, 1);
    EXPECT_NEAR(account.sum_samples_per_second(), 13333, 1);
  }
}

TEST(ShardPlannerTest, KeepsItsPlanUnderNoise) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    Group group({{0.001, 1e-4}, {0.002, 2e-4}, {0, 3e-4}}, 256, "auto", {}, 0.1, seed);
    group.run(160);  // the first plans come from few steps and may be mended
    const size_t found = group.changed_at().size();
    EXPECT_LE(found, 6u) << "seed " << seed;
    group.run(2000);
    EXPECT_LE(group.changed_at().size() - found, 2u) << "seed " << seed;
  }
}

TEST(ShardPlannerTest, ASmallGainChangesNothing) {
  Group group({{0, 1.00e-4}, {0, 1.05e-4}}, 256);  // 2.4 %
  group.run(500);
  EXPECT_TRUE(group.changed_at().empty());
  EXPECT_EQ(group.rows(), (Rows{128, 128}));
}

TEST(ShardPlannerTest, ASteadyChangeIsAtMostAFifthOfAShare) {
  Group group({{0, 1e-4}, {0, 1e-4}}, 256);
  group.run(60);
  ASSERT_EQ(group.rows(), (Rows{128, 128}));
  group.set_cost(1, {0, 1.24e-4});  // too little to count as a change of speed
  Rows last = group.rows();
  for (int i = 0; i < 400; ++i) {
    group.run(1);
    const Rows now = group.rows();
    for (size_t r = 0; r < 2; ++r)
      EXPECT_LE(std::abs(now[r] - last[r]),
                static_cast<int64_t>(std::ceil(0.2 * static_cast<double>(last[r]))));
    last = now;
  }
  EXPECT_NEAR(static_cast<double>(last[0]), 142, 4);
}

TEST(ShardPlannerTest, FollowsAChangeOfSpeedWithinTenSteps) {
  for (const double factor : {3.0, 1 / 3.0}) {
    std::vector<CostLine> costs = {{0, 1e-4}, {0, 2e-4}};
    Group group(costs, 256, "auto", {}, 0.02);
    group.run(60);
    costs[1].per_row *= factor;
    group.set_cost(1, costs[1]);
    group.run(10);
    EXPECT_LE(0.92 * (group.run(50) - 0.001), ideal(costs, 256)) << factor;
  }
}

TEST(ShardPlannerTest, OneLongStepIsNoChangeOfSpeed) {
  const std::vector<CostLine> costs = {{0, 1e-4}, {0, 2e-4}};
  Group group(costs, 256);
  group.run(60);
  const size_t found = group.changed_at().size();
  for (int i = 0; i < 10; ++i) {
    group.set_cost(1, {0, 2e-3});
    group.run(2);
    group.set_cost(1, costs[1]);
    group.run(20);
  }
  EXPECT_EQ(group.changed_at().size(), found);
}

TEST(ShardPlannerTest, ASpeedThatChangesAllTheTimeIsNotFollowedForEver) {
  Group group({{0, 1e-4}, {0, 1e-4}}, 256);
  group.run(60);
  size_t early = 0, late = 0;
  for (int i = 0; i < 40; ++i) {
    const size_t before = group.changed_at().size();
    group.set_cost(1, {0, i % 2 == 0 ? 4e-4 : 1e-4});
    group.run(10);
    (i < 10 ? early : late) += group.changed_at().size() - before;
  }
  EXPECT_LT(static_cast<double>(late) / 30, 0.5 * static_cast<double>(early) / 10);
}

TEST(ShardPlannerTest, WhoIsTooSlowIsLeftOutWithNumbers) {
  // Its fixed cost alone is more than the other needs for everything.
  Group group({{0, 1e-5}, {0.012, 1e-4}}, 256);
  group.run(60);
  EXPECT_EQ(group.rows(), (Rows{256, 0}));
  EXPECT_TRUE(group.noted("cpu:1 is left out: with it a step takes ")) << group.notes().back();
  const ShardAccount account = group.account();
  EXPECT_TRUE(account.ranks[1].left_out);
  EXPECT_GT(account.ranks[1].change_without, 0);
  EXPECT_LT(account.ranks[0].change_without, -0.5);
  const size_t changes = group.changed_at().size();
  group.run(500);
  EXPECT_EQ(group.changed_at().size(), changes);
}

TEST(ShardPlannerTest, WhoHindersTheOthersIsLeftOutByMeasurement) {
  // By its own times it is worth 5 %, but a step with it takes 4 ms more.
  Group group({{0, 1e-4}, {0, 2e-3}}, 256);
  group.extra = [](const Rows& rows) { return rows[1] > 0 ? 0.005 : 0.001; };
  group.run(60);
  EXPECT_EQ(group.rows(), (Rows{256, 0}));
  EXPECT_TRUE(group.noted("cpu:1 is left out: with it a step takes 29.4 ms, without 26.6 ms"))
      << group.notes().back();
}

TEST(ShardPlannerTest, WhoHelpsALittleStays) {
  Group group({{0, 1e-4}, {0, 2e-3}}, 256);
  group.run(100);
  EXPECT_GT(group.rows()[1], 5);
  EXPECT_TRUE(group.noted("cpu:1 stays: with it a step takes ")) << group.notes().back();
  EXPECT_LT(group.account().ranks[1].change_without, -0.03);
  EXPECT_FALSE(group.account().ranks[1].left_out);
}

TEST(ShardPlannerTest, AfterAChangeOfSpeedWhoWasLeftOutIsAskedAgain) {
  Group group({{0, 1e-5}, {0.012, 1e-5}}, 256);
  group.run(60);
  ASSERT_EQ(group.rows(), (Rows{256, 0}));
  group.set_cost(0, {0, 1e-3});  // 100 times slower
  group.run(40);
  EXPECT_GT(group.rows()[1], 200);
}

TEST(ShardPlannerTest, NobodyGetsMoreThanItsMemoryHolds) {
  Group group({{0, 1e-5}, {0, 1e-3}}, 256, "auto", {{100, 1}, {1000, 1}});
  EXPECT_EQ(group.rows(), (Rows{100, 156}));  // from the first step on
  for (int i = 0; i < 200; ++i) {
    group.run(1);
    ASSERT_LE(group.rows()[0], 100);
  }
  EXPECT_EQ(group.rows(), (Rows{100, 156}));
  try {
    Group small({{0, 1e-5}, {0, 1e-3}}, 256, "auto", {{100, 1}, {100, 1}});
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kDevice);
    EXPECT_NE(e.message().find("a batch of 256 samples does not fit"), std::string::npos);
  }
}

TEST(ShardPlannerTest, MultiplesWhereTheyCostLittle) {
  Group group({{0, 1e-5}, {0, 1.1e-5}}, 8192, "auto", {{1 << 20, 32}, {1 << 20, 32}});
  group.run(100);
  EXPECT_EQ(group.rows()[0] % 32, 0) << group.rows()[0];
  EXPECT_NEAR(static_cast<double>(group.rows()[0]), 8192 * 1.1 / 2.1, 40);
}

TEST(ShardPlannerTest, RaggedBatchesAndZeroRows) {
  Group group({{0.001, 1e-4}, {0, 2e-4}, {0, 1e-4}}, 64, "2,1,0");  // fixed: the third has none
  for (int epoch = 0; epoch < 20; ++epoch) {
    for (int i = 0; i < 6; ++i) group.step(64);
    group.step(11);
  }
  EXPECT_EQ(group.account().ranks[2].solo_samples_per_second, 0);
  EXPECT_NEAR(group.account().ranks[0].solo_samples_per_second, 64 / 0.0074, 100);
  Group few({{0, 1e-3}, {0, 1e-3}, {0, 1e-3}}, 2);  // more ranks than samples
  few.run(100);
  const Rows rows = few.rows();
  EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), int64_t{0}), 2);
}

TEST(ShardPlannerTest, ARankThatIsAloneIsMeasuredOnceItsQueueIsFull) {
  ShardPlan plan("auto", 1);
  ShardPlannerOptions options;
  options.batch_size = 64;
  options.names = {"cpu:0"};
  options.limits.resize(1);
  ShardPlanner planner(options, plan);
  int steps = 0;
  for (; !planner.measure().settled; ++steps) {
    ASSERT_LT(steps, 100);
    // The first steps are enqueued faster than they run.
    EXPECT_FALSE(planner.observe({{64, 0, steps < 8 ? 1e-4 : 4e-3}}));
  }
  EXPECT_GE(steps, 16);
  EXPECT_DOUBLE_EQ(planner.measure().step_seconds, 4e-3);
  const ShardAccount account = planner.account();
  EXPECT_NEAR(account.ranks[0].solo_samples_per_second, 16000, 1e-6);
  EXPECT_NEAR(account.sum_samples_per_second(), account.all_samples_per_second, 1e-6);
  EXPECT_EQ(account.exposed, 0);
}

TEST(ShardPlannerTest, TheAccountOfANewPlanHasTheOldSpeed) {
  Group group({{0, 1e-4}, {0, 3e-4}}, 64);
  while (group.changed_at().empty()) group.run(1);
  EXPECT_GT(group.account().all_samples_per_second, 0);  // nothing of the new plan is measured yet
}

}  // namespace
}  // namespace netcl