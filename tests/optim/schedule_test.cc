// The schedules' formulas at their corners.
#include "core/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"

namespace netcl {
namespace {

TEST(ScheduleTest, WarmUpIsALineToOne) {
  for (const char* name : {"constant", "step", "cosine", "linear"}) {
    Schedule s;
    s.type = schedule_type(name);
    s.warmup_steps = 4;
    s.step_size = 10;
    s.check();
    EXPECT_DOUBLE_EQ(s.lr_factor(1, 100), 0.25);
    EXPECT_DOUBLE_EQ(s.lr_factor(4, 100), 1);
    EXPECT_DOUBLE_EQ(s.lr_factor(5, 100), 1) << name;
    EXPECT_EQ(schedule_name(s.type), std::string(name));
  }
}

TEST(ScheduleTest, Constant) { EXPECT_EQ(Schedule().lr_factor(77, 10), 1); }

TEST(ScheduleTest, StepDropsEveryStepSize) {
  Schedule s;
  s.type = Schedule::Type::kStep;
  s.step_size = 3;
  s.gamma = 0.5;
  const double wanted[] = {1, 1, 1, 0.5, 0.5, 0.5, 0.25};
  for (int64_t i = 0; i < 7; ++i) EXPECT_DOUBLE_EQ(s.lr_factor(i + 1, 7), wanted[i]);
}

TEST(ScheduleTest, CosineFallsToTheLeastRate) {
  Schedule s;
  s.type = Schedule::Type::kCosine;
  s.min_factor = 0.1;
  EXPECT_DOUBLE_EQ(s.lr_factor(1, 8), 1);
  EXPECT_DOUBLE_EQ(s.lr_factor(5, 8), 0.55);  // half way
  EXPECT_DOUBLE_EQ(s.lr_factor(3, 8), 0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2);
  EXPECT_DOUBLE_EQ(s.lr_factor(9, 8), 0.1);
  EXPECT_DOUBLE_EQ(s.lr_factor(100, 8), 0.1);  // beyond the end it stays there
}

TEST(ScheduleTest, LinearFallsToTheLeastRate) {
  Schedule s;
  s.type = Schedule::Type::kLinear;
  s.min_factor = 0.2;
  s.warmup_steps = 2;
  EXPECT_DOUBLE_EQ(s.lr_factor(3, 10), 1);
  EXPECT_DOUBLE_EQ(s.lr_factor(7, 10), 0.6);
  EXPECT_DOUBLE_EQ(s.lr_factor(11, 10), 0.2);
}

TEST(ScheduleTest, WarmUpLongerThanTheRun) {
  Schedule s;
  s.type = Schedule::Type::kCosine;
  s.warmup_steps = 10;
  EXPECT_DOUBLE_EQ(s.lr_factor(5, 5), 0.5);
}

TEST(ScheduleTest, RefusesNonsense) {
  Schedule s;
  s.type = Schedule::Type::kStep;
  EXPECT_THROW(s.check(), Error);  // no step_size
  s.step_size = 1;
  s.min_factor = 2;
  EXPECT_THROW(s.check(), Error);
  s.min_factor = 0;
  s.warmup_steps = -1;
  EXPECT_THROW(s.check(), Error);
  EXPECT_THROW(s.lr_factor(0, 10), Error);
  EXPECT_THROW(schedule_type("cosin"), Error);
}

TEST(ScheduleTest, EpochsAreTheUnit) {
  Schedule s;
  s.type = Schedule::Type::kMultistep;
  s.milestones = {1, 3};
  s.gamma = 0.5;
  s.by_epoch = true;
  s.warmup_epochs = 2;
  s.check();
  constexpr int64_t kPerEpoch = 10, kTotal = 70;
  EXPECT_DOUBLE_EQ(s.lr_factor(5, kTotal, kPerEpoch), 0.25);
  EXPECT_DOUBLE_EQ(s.lr_factor(20, kTotal, kPerEpoch), 1);
  EXPECT_DOUBLE_EQ(s.lr_factor(30, kTotal, kPerEpoch), 1);
  EXPECT_DOUBLE_EQ(s.lr_factor(31, kTotal, kPerEpoch), 0.5);
  EXPECT_DOUBLE_EQ(s.lr_factor(51, kTotal, kPerEpoch), 0.25);
}

TEST(ScheduleTest, ShortCyclesStayInRange) {
  Schedule s;
  s.type = Schedule::Type::kOneCycle;
  for (int64_t total = 1; total <= 12; ++total) {
    for (int64_t step = 1; step <= total + 3; ++step) {
      const double f = s.lr_factor(step, total);
      EXPECT_TRUE(f > 0 && f <= 1) << "step " << step << " of " << total << ": " << f;
    }
  }
}

TEST(ScheduleTest, APlateauLowersItsFactorOnce) {
  Schedule s;
  s.type = Schedule::Type::kPlateau;
  s.patience = 1;
  s.factor = 0.5;
  s.min_factor = 0.3;
  s.check();
  Plateau p;
  EXPECT_FALSE(p.end_of_epoch(s, 1.0));
  EXPECT_FALSE(p.end_of_epoch(s, 1.0));  // one bad epoch is allowed
  EXPECT_TRUE(p.end_of_epoch(s, 1.0));
  EXPECT_DOUBLE_EQ(p.factor, 0.5);
  p.end_of_epoch(s, 1.0);
  EXPECT_TRUE(p.end_of_epoch(s, 1.0));
  EXPECT_DOUBLE_EQ(p.factor, 0.3);  // not below the least
  p.end_of_epoch(s, 1.0);
  EXPECT_FALSE(p.end_of_epoch(s, 1.0));
  EXPECT_FALSE(p.end_of_epoch(s, 0.5));
  EXPECT_EQ(p.bad_epochs, 0);
}

}  // namespace
}  // namespace netcl
