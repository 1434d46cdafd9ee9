// Replicas of a model in one process train as one device with the whole batch does.
#include "core/distributed/replicas.h"

#include "core/optim/optimizers.h"
#include "tests/library/library.h"

namespace netcl {
namespace testing {
namespace {

struct Case {
  size_t replicas;
  const char* shard;
};
const std::vector<Case> kCases = {{2, "even"}, {3, "even"}, {3, "7,2,1"}, {3, "8,0,2"}, {2, "0,1"}};
const std::vector<Case> kFewCases = {{2, "even"}, {3, "8,0,2"}};  // every size is built anew

class ReplicasTest : public LibraryTest {
 protected:
  static Model model(bool dropout = false, bool norm = false) {
    std::vector<LayerSpec> layers = {Linear(8, 16)};
    if (norm) layers.push_back(BatchNorm(true));
    layers.push_back(Tanh());
    if (dropout) layers.push_back(Dropout(0.25));
    layers.push_back(Linear(16, 3));
    return Model(runtime(), layers);
  }
  // Momentum, not Adam: its steps are linear in the gradient, so rounding stays rounding.
  static Optimizer momentum() { return Sgd{0.05, 0.9}; }

  struct Run {
    std::vector<double> losses;
    std::vector<float> first_gradients, parameters;
  };
  static Run train(const Model& m, size_t n, const Optimizer& optimizer,
                   const PrepareOptions& options) {
    Replicas replicas(m, queues(n), optimizer, options);
    Run out;
    for (const ToyBatch& step : toy_steps()) {
      out.losses.push_back(data_parallel_step(replicas, step.batch()));
      if (out.first_gradients.empty()) out.first_gradients = replicas.gradients();
    }
    out.parameters = replicas.parameters(0);
    for (size_t r = 1; r < n; ++r) EXPECT_EQ(replicas.parameters(r), out.parameters);
    return out;
  }
  static void expect_same(const Model& m, const Optimizer& optimizer, PrepareOptions options,
                          const std::vector<Case>& cases) {
    options.shard = "even";
    const Run whole = train(m, 1, optimizer, options);
    EXPECT_LT(whole.losses.back(), whole.losses.front());
    for (const Case& c : cases) {
      SCOPED_TRACE(str_cat(c.replicas, " replicas, ", c.shard));
      options.shard = c.shard;
      const Run parts = train(m, c.replicas, optimizer, options);
      EXPECT_NEAR(parts.losses[0], whole.losses[0], 1e-6);
      // Sums of 32 rows, not divided: their mean is within 1e-6.
      EXPECT_LT(largest_difference(parts.first_gradients, whole.first_gradients), 32e-6);
      // Twenty steps in another order of additions.
      EXPECT_LT(largest_difference(parts.parameters, whole.parameters), 1e-5);
      for (size_t i = 0; i < whole.losses.size(); ++i)
        EXPECT_NEAR(parts.losses[i], whole.losses[i], 1e-5) << "step " << i;
    }
  }
};

TEST_F(ReplicasTest, ShardsGiveTheWholeBatch) { expect_same(model(), momentum(), {}, kCases); }

TEST_F(ReplicasTest, AlsoWithDropoutAndClipping) {
  Optimizer clipped = momentum();
  clipped.clip_norm = 0.5;
  expect_same(model(true), clipped, {}, kCases);
}

TEST_F(ReplicasTest, AlsoWithSumsInsideOfTheStep) {
  expect_same(model(false, true), momentum(), {}, kFewCases);
}

TEST_F(ReplicasTest, AlsoWithClassWeightsAndIgnoredLabels) {
  PrepareOptions options;
  options.loss.class_weights = {1.0f, 0.25f, 3.0f};
  options.loss.ignore_index = 2;  // some shards may have nothing that counts
  expect_same(model(), momentum(), options, kFewCases);
}

TEST_F(ReplicasTest, LossesUnderAdamW) {
  const Run whole = train(model(), 1, AdamW{0.01}, {});
  PrepareOptions options;
  options.shard = "7,2,1";
  const Run parts = train(model(), 3, AdamW{0.01}, options);
  for (size_t i = 0; i < whole.losses.size(); ++i)
    EXPECT_NEAR(parts.losses[i], whole.losses[i], 1e-4) << "step " << i;
}

TEST_F(ReplicasTest, TheStepsOfTheFlowAreTheWholeStep) {
  const std::vector<ToyBatch> steps = toy_steps();
  Replicas at_once(model(), queues(2), momentum()), by_hand(model(), queues(2), momentum());
  for (const ToyBatch& step : steps) {
    const double loss = data_parallel_step(at_once, step.batch());
    by_hand.zero_grad();
    const std::vector<Shard> shards = shard_batch(step.batch(), by_hand.plan());
    for (size_t r = 0; r < by_hand.size(); ++r) by_hand[r].forward_backward(shards[r]);
    sync_grads(by_hand);
    for (size_t r = 0; r < by_hand.size(); ++r) by_hand[r].step();
    EXPECT_EQ(by_hand.loss(), loss);
  }
  EXPECT_EQ(by_hand.parameters(1), at_once.parameters(1));
  EXPECT_EQ(by_hand.steps(), 20);
}

TEST_F(ReplicasTest, PartsOfABatchAddUp) {
  const ToyBatch toy(32, 1);
  Replicas whole(model(), queues(1), momentum());
  data_parallel_step(whole, toy.batch());
  PrepareOptions options;
  options.accumulate = true;
  Replicas parts(model(), queues(2), momentum(), options);
  parts.zero_grad();
  parts.forward_backward(shard_batch(toy.batch().rows(0, 20), parts.plan()));
  parts.forward_backward(shard_batch(toy.batch().rows(20, 12), parts.plan()));
  sync_grads(parts);
  parts.step();
  EXPECT_LT(largest_difference(parts.parameters(), whole.parameters()), 1e-6);
}

TEST_F(ReplicasTest, MemoryGrowsWithTheShards) {
  PrepareOptions options;
  options.shard_rows = 1;
  const std::vector<ToyBatch> steps = toy_steps();
  Replicas small(model(), queues(2), AdamW{0.01}, options), large(model(), queues(2), AdamW{0.01});
  for (const int64_t rows : {2, 5, 32}) {
    for (size_t i = 0; i < 3; ++i) {
      const ToyBatch toy(rows, i);
      EXPECT_EQ(data_parallel_step(small, toy.batch()), data_parallel_step(large, toy.batch()));
    }
  }
  EXPECT_EQ(small.parameters(1), large.parameters(1));
}

TEST_F(ReplicasTest, BroadcastsFollowTheirPolicy) {
  const ToyBatch toy(12, 3);
  const auto drift = [](Replicas& replicas) {
    std::vector<float> changed = replicas.parameters(0);
    for (float& v : changed) v = v == 0 ? 0 : v + 1;  // the gaps stay zero
    replicas[0].replica().write_parameters(changed);
    return changed;
  };
  Replicas replicas(model(), queues(3), momentum());
  for (int step = 1; step <= 4; ++step) {
    SCOPED_TRACE(step);
    data_parallel_step(replicas, toy.batch());
    drift(replicas);
    const std::vector<float> other = replicas.parameters(2);
    broadcast_params(replicas, BroadcastPolicy::never());
    EXPECT_NE(replicas.parameters(0), other);
    broadcast_params(replicas, BroadcastPolicy::every_steps(2), 2);
    EXPECT_EQ(replicas.parameters(0) == other, step % 2 == 0);
    broadcast_params(replicas, BroadcastPolicy::every_step(), 1);
    for (size_t r = 0; r < 3; ++r) EXPECT_EQ(replicas.parameters(r), other);
  }
  // As an option of data_parallel_step.
  PrepareOptions options;
  options.broadcast = BroadcastPolicy::every_steps(2);
  Replicas automatic(model(), queues(2), momentum(), options);
  drift(automatic);
  data_parallel_step(automatic, toy.batch());
  EXPECT_NE(automatic.parameters(0), automatic.parameters(1));
  data_parallel_step(automatic, toy.batch());
  EXPECT_EQ(automatic.parameters(0), automatic.parameters(1));
}

TEST_F(ReplicasTest, EvaluationAndPredictionCountEveryRowOnce) {
  const ToyBatch test(101, 50);
  for (const bool norm : {false, true}) {
    PrepareOptions options;
    options.shard = "8,0,2";
    Replicas one(model(false, norm), queues(1), momentum()),
        three(model(false, norm), queues(3), momentum(), options);
    for (const ToyBatch& step : toy_steps()) {
      data_parallel_step(one, step.batch());
      data_parallel_step(three, step.batch());
    }
    const Sums want = one.evaluate(test.batch()), got = three.evaluate(test.batch());
    EXPECT_EQ(got.count(), 101);
    EXPECT_NEAR(got.loss(), want.loss(), 1e-5);
    EXPECT_EQ(got.accuracy(), want.accuracy());
    EXPECT_GT(got.accuracy(), 0.8);
    const std::vector<float> scores = three.predict(test.batch());
    EXPECT_EQ(scores.size(), 303u);
    EXPECT_LT(largest_difference(scores, one.predict(test.batch())), 1e-4);
  }
}

TEST_F(ReplicasTest, BatchNormOfShardsIsMerged) {
  std::vector<LayerSpec> layers = {Linear(8, 16), BatchNorm(), Tanh(), Linear(16, 3)};
  Replicas replicas(Model(runtime(), layers), queues(2), momentum());
  for (const ToyBatch& step : toy_steps()) data_parallel_step(replicas, step.batch());
  EXPECT_NE(replicas[0].replica().read_statistics(), replicas[1].replica().read_statistics());
  EXPECT_GT(replicas.evaluate(ToyBatch(101, 50).batch()).accuracy(), 0.8);
  EXPECT_EQ(replicas[0].replica().read_statistics(), replicas[1].replica().read_statistics());
}

TEST_F(ReplicasTest, FloatTargets) {
  PrepareOptions options;
  options.loss.type = "mse";
  options.label_dtype = DType::kF32;
  options.label_shape = Shape{2};
  const Model regression(runtime(), {Linear(4, 8), Relu(), Linear(8, 2)});
  std::vector<float> x(40), y(20);
  for (size_t i = 0; i < 40; ++i) x[i] = static_cast<float>(i % 7) / 7;
  for (size_t i = 0; i < 20; ++i) y[i] = x[2 * i] - x[2 * i + 1];
  Replicas one(regression, queues(1), momentum(), options),
      two(regression, queues(2), momentum(), options);
  for (int i = 0; i < 10; ++i) {
    const double want = data_parallel_step(one, {x, y, 10});
    EXPECT_NEAR(data_parallel_step(two, {x, y, 10}), want, 1e-6);
  }
  EXPECT_LT(largest_difference(one.parameters(), two.parameters()), 1e-5);
}

TEST_F(ReplicasTest, MistakesInAStepAreNamed) {
  Replicas replicas(model(), queues(2), momentum());
  const ToyBatch toy(4, 1);
  const auto refused = [](const char* words, auto&& body) {
    expect_has(error_of(ErrorCode::kUsage, body), words);
  };
  const std::vector<Shard> shards = shard_batch(toy.batch(), replicas.plan());
  refused("without gradients", [&] { replicas.step(); });
  refused("before the first sync_grads", [&] { replicas.loss(); });
  refused("replica 0 has no gradients", [&] { sync_grads(replicas); });
  replicas[0].forward_backward(shards[0]);
  refused("replica 1 has no gradients", [&] { sync_grads(replicas); });
  refused("has gradients already", [&] { replicas[0].forward_backward(shards[0]); });
  refused("its own shard alone", [&] { replicas[0].step(); });
  replicas[1].forward_backward(shards[1]);
  sync_grads(replicas);
  refused("synchronised gradients already", [&] { sync_grads(replicas); });
  replicas.step();
  refused("1 shards for 2 replicas", [&] { replicas.forward_backward({shards[0]}); });
  refused("root 5", [&] { broadcast_params(replicas, BroadcastPolicy::every_step(), 5); });
  refused("without rows", [&] { data_parallel_step(replicas, toy.batch().rows(0, 0)); });
  const std::vector<float> narrow(12);
  refused("whose input has f32[8]", [&] { data_parallel_step(replicas, {narrow, toy.y}); });
  refused("equally long", [&] { data_parallel_step(replicas, {std::vector<float>(13), toy.y}); });
  const std::vector<int32_t> classes = {0, 1, 7, 2};
  refused("label 7 of row", [&] { data_parallel_step(replicas, {toy.x, classes}); });
  refused("labels are f32[3]", [&] {
    data_parallel_step(replicas, {toy.x, std::vector<float>(12), 4});
  });
  refused("a broadcast every 0", [] { BroadcastPolicy::every_steps(0); });
  // Nothing of this has done harm.
  EXPECT_GT(data_parallel_step(replicas, toy.batch()), 0);
}

TEST_F(ReplicasTest, MistakesInAModelAreNamed) {
  const auto refused = [](ErrorCode code, const char* words, auto&& body) {
    expect_has(error_of(code, body), words);
  };
  refused(ErrorCode::kUsage,
          "model.layers[2] (linear): takes 128 inputs as it is written, but gets 16", [&] {
            const Sequential wrong(runtime(), {Linear(8, 16), Relu(), Linear(128, 3)});
            Replicas(wrong, queues(1), momentum());
          });
  refused(ErrorCode::kUsage, "at least one layer", [&] { Sequential(runtime(), {}); });
  refused(ErrorCode::kUsage, "give its shape", [&] {
    Sequential(runtime(), {Conv2d(1, 4, 3), Flatten(), Linear(4, 3)});
  });
  refused(ErrorCode::kUsage, "linear", [&] { Sequential(runtime(), {LayerSpec("linaer")}); });
  refused(ErrorCode::kUsage, "out must be at least 1", [] { Linear(8, 0); });
  PrepareOptions options;
  options.shard = "1,2,3";
  refused(ErrorCode::kUsage, "3 weights for 2",
          [&] { Replicas(model(), queues(2), momentum(), options); });
  options.shard = "auto";
  refused(ErrorCode::kUsage, "measured speeds",
          [&] { Replicas(model(), queues(2), momentum(), options); });
  refused(ErrorCode::kUsage, "at least one queue", [&] { Replicas(model(), {}, momentum()); });
}

}  // namespace
}  // namespace testing
}  // namespace netcl
