// The training loop with one replica: it learns, repeats, resumes, stops and notices divergence.
#include "core/distributed/trainer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/distributed/toy.h"

namespace netcl {
namespace testing {
namespace {

TrainerOptions make_options(int64_t epochs) {
  TrainerOptions options;
  options.lr = 0.01;
  options.batch_size = 32;  // 203 samples: six full batches and one of 11
  options.epochs = epochs;
  options.seed = 3;
  return options;
}

struct Outcome {
  std::vector<StepReport> steps;
  std::vector<EpochReport> epochs;
  StopReason reason = StopReason::kFinished;
  int64_t steps_done = 0;
  RankAccount account;
};

Outcome train(ToyReplica& toy, const TrainerOptions& options, const Dataset& data,
              const Dataset* test = nullptr, int64_t stop_after = -1) {
  Outcome run;
  TrainerHooks hooks;
  hooks.step = [&](const StepReport& report) { run.steps.push_back(report); };
  hooks.epoch = [&](const EpochReport& report) { run.epochs.push_back(report); };
  hooks.stop_requested = [&] {
    return stop_after >= 0 && static_cast<int64_t>(run.steps.size()) >= stop_after;
  };
  Trainer trainer(options, *toy.replica, Group(), ShardPlan("even", 1), data, test, hooks);
  trainer.prepare();
  run.reason = trainer.run();
  run.steps_done = trainer.steps_done();
  run.account = trainer.account();
  return run;
}

TEST(TrainerTest, Learns) {
  const Dataset data = toy_dataset();
  ToyReplica toy;
  const Outcome run = train(toy, make_options(8), data, &data);
  EXPECT_EQ(run.reason, StopReason::kFinished);
  EXPECT_EQ(run.steps_done, 8 * 7);
  ASSERT_EQ(run.steps.size(), 56u);
  for (size_t i = 0; i < run.steps.size(); ++i) {
    EXPECT_EQ(run.steps[i].step, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(run.steps[i].epoch, static_cast<int64_t>(i) / 7);
  }
  ASSERT_EQ(run.epochs.size(), 8u);
  for (const EpochReport& report : run.epochs) {
    EXPECT_TRUE(report.complete);
    EXPECT_EQ(report.samples, kToySamples);
    EXPECT_EQ(report.train.values.at("denominator"), static_cast<double>(kToySamples));
    ASSERT_TRUE(report.test.has_value());
    EXPECT_EQ(report.test->values.at("denominator"), static_cast<double>(kToySamples));
  }
  EXPECT_LT(run.epochs.back().train.loss(), 0.5 * run.epochs.front().train.loss());
  EXPECT_GT(run.epochs.back().test->accuracy(), 0.9);
  EXPECT_EQ(run.account.samples, 8 * kToySamples);
}

TEST(TrainerTest, TheSameSeedGivesTheSameBits) {
  const Dataset data = toy_dataset();
  ToyReplica a(true, true), b(true, true);
  const Outcome first = train(a, make_options(2), data), second = train(b, make_options(2), data);
  ASSERT_EQ(first.steps.size(), second.steps.size());
  for (size_t i = 0; i < first.steps.size(); ++i)
    EXPECT_EQ(first.steps[i].loss, second.steps[i].loss);
  EXPECT_EQ(a.replica->read_parameters(), b.replica->read_parameters());
}

TEST(TrainerTest, ResumesWithinAnEpochToTheSameBits) {
  const Dataset data = toy_dataset();
  ToyReplica whole(true, true), parts(true, true);
  train(whole, make_options(3), data);
  TrainerOptions options = make_options(3);
  options.max_steps = 10;  // three steps into the second epoch
  const Outcome first = train(parts, options, data);
  EXPECT_EQ(first.reason, StopReason::kMaxSteps);
  EXPECT_EQ(first.steps_done, 10);
  EXPECT_FALSE(first.epochs.back().complete);
  EXPECT_EQ(first.epochs.back().samples, 3 * 32);
  options.max_steps = 0;
  options.first_step = 10;
  const Outcome second = train(parts, options, data);
  EXPECT_EQ(second.steps.front().step, 11);
  EXPECT_EQ(second.steps_done, 21);
  EXPECT_EQ(whole.replica->read_parameters(), parts.replica->read_parameters());
}

TEST(TrainerTest, StopsWhenAsked) {
  const Dataset data = toy_dataset();
  ToyReplica toy;
  const Outcome run = train(toy, make_options(50), data, &data, 3);
  EXPECT_EQ(run.reason, StopReason::kInterrupted);
  EXPECT_GE(run.steps_done, 3);
  EXPECT_LT(run.steps_done, 50 * 7);
  EXPECT_EQ(static_cast<int64_t>(run.steps.size()), run.steps_done);  // nothing is lost
  EXPECT_FALSE(run.epochs.back().test.has_value());
}

TEST(TrainerTest, DivergenceNamesTheStep) {
  const Dataset data = toy_dataset();
  ToyReplica toy(true, false, Optimizer::sgd());
  TrainerOptions options = make_options(3);
  options.lr = 1e38;
  try {
    train(toy, options, data);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kTraining);
    EXPECT_NE(e.message().find("at step "), std::string::npos) << e.message();
    EXPECT_NE(e.message().find("learning rate"), std::string::npos) << e.message();
  }
}

TEST(TrainerTest, ABatchLargerThanTheDataIsTheWholeData) {
  const Dataset data = toy_dataset();
  ToyReplica toy;
  TrainerOptions options = make_options(2);
  options.batch_size = 1000;
  const Outcome run = train(toy, options, data);
  EXPECT_EQ(run.steps_done, 2);
  EXPECT_EQ(run.epochs[0].samples, kToySamples);
}

}  // namespace
}  // namespace testing
}  // namespace netcl
