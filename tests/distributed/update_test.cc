// What surrounds an optimiser's step, on a device: passes that add up to a batch, frozen slots,
// clipping, the average of the parameters, and a plateau that is resumed.
#include <gtest/gtest.h>

#include <cmath>

#include "core/distributed/trainer.h"
#include "tests/distributed/toy.h"

namespace netcl {
namespace testing {
namespace {

TrainerOptions make_options(int64_t epochs, int64_t batch_size = 32) {
  TrainerOptions options;
  options.lr = 0.05;
  options.batch_size = batch_size;  // 203 samples: six full batches and one of 11
  options.epochs = epochs;
  options.seed = 3;
  return options;
}

std::vector<EpochReport> train(ToyReplica& toy, const TrainerOptions& options, const Dataset& data,
                               const Dataset* test = nullptr) {
  std::vector<EpochReport> reports;
  TrainerHooks hooks;
  hooks.epoch = [&](const EpochReport& report) { reports.push_back(report); };
  Trainer trainer(options, *toy.replica, Group(), ShardPlan("even", 1), data, test, hooks);
  trainer.prepare();
  trainer.run();
  return reports;
}

Optimizer momentum() {
  Optimizer out = Optimizer::sgd(0.05);
  out.momentum = 0.9;
  return out;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double out = 0;
  for (size_t i = 0; i < a.size(); ++i)
    out = std::max(out, std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return out;
}

// The entries of a parameter in an arena.
std::vector<float> cut(const ToyReplica& toy, const std::vector<float>& arena,
                       const std::string& slot) {
  const ArenaLayout::Entry& entry = toy.graphs.parameters.find(slot);
  const auto begin = arena.begin() + entry.offset;
  return {begin, begin + entry.desc.shape.num_elements()};
}

TEST(UpdateTest, PassesAddUpToTheBatch) {
  const Dataset data = toy_dataset();
  ToyReplica whole(true, true, momentum());
  const auto want = train(whole, make_options(2), data, &data);
  for (const int64_t passes : {2, 3, 16}) {  // 16: more than the last batch of 11 has samples
    SCOPED_TRACE(passes);
    ToyReplica parts(true, true, momentum(), true);
    TrainerOptions options = make_options(2);
    options.accumulate = passes;
    const auto got = train(parts, options, data, &data);
    // Sums of up to 32 terms in another order, fourteen steps.
    EXPECT_LT(
        largest_difference(whole.replica->read_parameters(), parts.replica->read_parameters()),
        1e-6);
    ASSERT_EQ(got.size(), want.size());
    EXPECT_EQ(got[1].samples, kToySamples);
    EXPECT_NEAR(got[1].train.loss(), want[1].train.loss(), 1e-6);
    EXPECT_NEAR(got[1].test->loss(), want[1].test->loss(), 1e-6);
  }
}

TEST(UpdateTest, FrozenSlotsKeepTheirBits) {
  const Dataset data = toy_dataset();
  Optimizer optimizer = Optimizer::adamw(0.05);
  optimizer.groups = {{"layers.0.*", std::nullopt, 1, true}};
  ToyReplica toy(true, false, optimizer);
  const std::vector<float> before = toy.replica->read_parameters();
  train(toy, make_options(1), data);
  const std::vector<float> after = toy.replica->read_parameters();
  for (const char* slot : {"layers.0.weight", "layers.0.bias"})
    EXPECT_EQ(cut(toy, before, slot), cut(toy, after, slot)) << slot;
  EXPECT_NE(cut(toy, before, "layers.2.weight"), cut(toy, after, "layers.2.weight"));
}

TEST(UpdateTest, ClippingBoundsTheStep) {
  const Dataset data = toy_dataset();
  Optimizer optimizer = Optimizer::sgd(0.05);
  optimizer.clip_norm = 1e-3;
  ToyReplica toy(true, false, optimizer);
  const std::vector<float> before = toy.replica->read_parameters();
  TrainerOptions options = make_options(1);
  options.max_steps = 1;
  const auto reports = train(toy, options, data);
  ASSERT_TRUE(reports.at(0).grad_norm.has_value());
  EXPECT_GT(*reports[0].grad_norm, 0.01);  // before clipping
  const std::vector<float> after = toy.replica->read_parameters();
  double sum = 0;
  for (size_t i = 0; i < after.size(); ++i)
    sum += std::pow(static_cast<double>(after[i]) - static_cast<double>(before[i]), 2);
  // Parameters of order one hold steps of 1e-6 to 6e-8 each.
  EXPECT_NEAR(std::sqrt(sum) / 0.05, 1e-3, 2e-5);
}

TEST(UpdateTest, EvaluationUsesTheAverage) {
  const Dataset data = toy_dataset();
  Optimizer with = momentum();
  with.ema_decay = 0.9;
  Optimizer aside = with;
  aside.ema_evaluate = false;
  ToyReplica plain(true, false, momentum()), averaged(true, false, with), other(true, false, aside);
  EXPECT_EQ(averaged.replica->read_state(1), averaged.replica->read_parameters());
  const auto a = train(plain, make_options(2), data, &data);
  const auto b = train(averaged, make_options(2), data, &data);
  const auto c = train(other, make_options(2), data, &data);
  EXPECT_EQ(plain.replica->read_parameters(), averaged.replica->read_parameters());
  EXPECT_EQ(a[1].test->loss(), c[1].test->loss());
  EXPECT_NE(a[1].test->loss(), b[1].test->loss());
  plain.replica->write_parameters(averaged.replica->read_state(1));
  plain.replica->reset_state();
  TrainerHooks hooks;
  Trainer judge(make_options(2), *plain.replica, Group(), ShardPlan("even", 1), data, &data, hooks);
  EXPECT_EQ(judge.evaluate(data)->loss(), b[1].test->loss());
}

TEST(UpdateTest, APlateauIsResumedWithinAnEpoch) {
  const Dataset data = toy_dataset();
  TrainerOptions options = make_options(6);
  options.schedule.type = Schedule::Type::kPlateau;
  options.schedule.watch_train = true;
  options.schedule.patience = 0;
  options.schedule.threshold = 0.2;  // an epoch must fall by a fifth
  ToyReplica whole(true, false, momentum()), parts(true, false, momentum());
  const auto want = train(whole, options, data);
  EXPECT_LT(want.back().plateau.factor, 1);
  TrainerOptions first = options;
  first.max_steps = 7 * 3 + 4;
  const auto before = train(parts, first, data);
  EXPECT_FALSE(before.back().complete);
  TrainerOptions second = options;
  second.first_step = first.max_steps;
  second.plateau = before.back().plateau;
  second.epoch_so_far = before.back().whole;
  const auto after = train(parts, second, data);
  EXPECT_EQ(after.back().plateau.factor, want.back().plateau.factor);
  EXPECT_EQ(after.back().plateau.bad_epochs, want.back().plateau.bad_epochs);
  EXPECT_EQ(whole.replica->read_parameters(), parts.replica->read_parameters());
}

}  // namespace
}  // namespace testing
}  // namespace netcl
