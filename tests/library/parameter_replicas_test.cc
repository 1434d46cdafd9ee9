// Lists of parameters with a step function written from ops: the same training as a model's.
#include "core/distributed/parameter_replicas.h"

#include "core/distributed/replicas.h"
#include "core/nn/step_losses.h"
#include "core/optim/optimizers.h"
#include "tests/library/library.h"

namespace netcl {
namespace testing {
namespace {

ParameterList mlp() {
  ParameterList out(5);
  out.uniform("w1", {16, 8}, 0.35).constant("b1", {16}, 0).normal("w2", {3, 16}, 0.25);
  return out.constant("b2", {3}, 0);
}

LossSums mlp_step(Tape& tape, const std::vector<ValueId>& p, ValueId x, ValueId y) {
  const Attrs transposed = {{"transpose_b", int64_t{1}}};
  const ValueId hidden = tape.call("tanh", {tape.call("matmul", {x, p[0], p[1]}, transposed)});
  return cross_entropy(tape, tape.call("matmul", {hidden, p[2], p[3]}, transposed), y);
}

class ParameterReplicasTest : public LibraryTest {
 protected:
  static Optimizer momentum() { return Sgd{0.05, 0.9}; }
  static std::vector<float> values(ParameterReplicas& replicas, size_t replica) {
    std::vector<float> out;
    for (const Tensor& tensor : replicas[replica].parameters()) {
      const std::vector<float> part = tensor.to_floats();
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  }
  struct Run {
    std::vector<double> losses;
    std::vector<float> parameters;
  };
  static Run train(size_t n, const char* shard, const Optimizer& optimizer) {
    ParameterOptions options;
    options.shard = shard;
    ParameterReplicas replicas(runtime(), mlp(), queues(n), optimizer, options);
    Run out;
    for (const ToyBatch& step : toy_steps())
      out.losses.push_back(data_parallel_step(replicas, step.batch(), mlp_step));
    out.parameters = values(replicas, 0);
    for (size_t r = 1; r < n; ++r) EXPECT_EQ(values(replicas, r), out.parameters);
    return out;
  }
};

TEST_F(ParameterReplicasTest, ShardsGiveTheWholeBatch) {
  Optimizer clipped = momentum();
  clipped.clip_norm = 0.5;
  for (const Optimizer& optimizer : {momentum(), clipped}) {
    const Run whole = train(1, "even", optimizer);
    EXPECT_LT(whole.losses.back(), 0.7 * whole.losses.front());
    const std::pair<size_t, const char*> cases[] = {
        {2, "even"}, {3, "even"}, {3, "7,2,1"}, {3, "8,0,2"}};
    for (const auto& [n, shard] : cases) {
      SCOPED_TRACE(shard);
      const Run parts = train(n, shard, optimizer);
      EXPECT_NEAR(parts.losses[0], whole.losses[0], 1e-6);
      EXPECT_LT(largest_difference(parts.parameters, whole.parameters), 1e-5);
    }
  }
}

// The same model from layers, with the same initial values, takes the same steps.
TEST_F(ParameterReplicasTest, TrainsAsAModelDoes) {
  for (const Optimizer& optimizer : {momentum(), static_cast<Optimizer>(AdamW{0.01})}) {
    Replicas model(Sequential(runtime(), {Linear(8, 16), Tanh(), Linear(16, 3)}), queues(2),
                   optimizer);
    std::vector<float> arena(static_cast<size_t>(model.graphs().parameters.num_floats()), 0.0f);
    const std::vector<std::string> slots = {"layers.0.weight", "layers.0.bias", "layers.2.weight",
                                            "layers.2.bias"};
    const ParameterList first = mlp();
    for (size_t i = 0; i < slots.size(); ++i) {
      const std::vector<float>& from = first.all()[i].values;
      std::copy(from.begin(), from.end(),
                arena.begin() + model.graphs().parameters.find(slots[i]).offset);
    }
    for (size_t r = 0; r < 2; ++r) model[r].replica().write_parameters(arena);
    ParameterReplicas list(runtime(), mlp(), queues(2), optimizer);
    for (const ToyBatch& step : toy_steps()) {
      const double want = data_parallel_step(model, step.batch());
      EXPECT_NEAR(data_parallel_step(list, step.batch(), mlp_step), want, 1e-5);
    }
    for (size_t i = 0; i < slots.size() && optimizer.type == Optimizer::Type::kSgd; ++i) {
      EXPECT_LT(largest_difference(list[0].parameters()[i].to_floats(), model.parameter(slots[i])),
                1e-5);
    }
  }
}

TEST_F(ParameterReplicasTest, ATrainingStepByHand) {
  ParameterReplicas at_once(runtime(), mlp(), queues(2), momentum()),
      by_hand(runtime(), mlp(), queues(2), momentum());
  const ToyBatch toy(9, 4);
  const double loss = data_parallel_step(at_once, toy.batch(), mlp_step);
  const std::vector<Shard> shards = shard_batch(toy.batch(), by_hand.plan());
  for (size_t r = 0; r < 2; ++r) by_hand[r].forward_backward(shards[r], mlp_step);
  sync_grads(by_hand);
  for (size_t r = 0; r < 2; ++r) by_hand[r].step();
  EXPECT_EQ(by_hand.loss(), loss);
  EXPECT_EQ(values(by_hand, 1), values(at_once, 1));
}

TEST_F(ParameterReplicasTest, AParameterWithoutAPartInTheLossStays) {
  ParameterList list = mlp();
  list.constant("unused", {5}, 3);
  ParameterReplicas replicas(runtime(), list, queues(2), momentum());
  for (const ToyBatch& step : toy_steps()) data_parallel_step(replicas, step.batch(), mlp_step);
  EXPECT_EQ(replicas[1].parameters()[4].to_floats(), std::vector<float>(5, 3.0f));
}

TEST_F(ParameterReplicasTest, BroadcastsFollowTheirPolicy) {
  ParameterReplicas replicas(runtime(), mlp(), queues(2), momentum());
  const ToyBatch toy(6, 2);
  // Drifts apart: replica 1 takes a step at another rate.
  const auto drift = [&] {
    replicas.zero_grad();
    const std::vector<Shard> shards = shard_batch(toy.batch(), replicas.plan());
    for (size_t r = 0; r < 2; ++r) replicas[r].forward_backward(shards[r], mlp_step);
    sync_grads(replicas);
    replicas.set_lr(0.05);
    replicas[0].step();
    replicas.set_lr(0.5);
    replicas[1].step();
  };
  drift();
  const std::vector<float> other = values(replicas, 1);
  EXPECT_NE(values(replicas, 0), other);
  broadcast_params(replicas, BroadcastPolicy::every_steps(2));
  EXPECT_NE(values(replicas, 0), other);
  broadcast_params(replicas, BroadcastPolicy::every_step(), 1);
  EXPECT_EQ(values(replicas, 0), other);
  EXPECT_EQ(values(replicas, 1), other);
  drift();
  broadcast_params(replicas, BroadcastPolicy::every_steps(2));
  EXPECT_EQ(values(replicas, 0), values(replicas, 1));
}

TEST_F(ParameterReplicasTest, FloatTargetsOfAShape) {
  ParameterOptions options;
  options.sample = Shape{2, 2};
  options.label = Shape{1};
  ParameterList list(1);
  list.uniform("w", {1, 4}, 0.5);
  const StepFunction step = [](Tape& tape, const std::vector<ValueId>& p, ValueId x, ValueId y) {
    EXPECT_EQ(tape.desc(x).shape.rank(), 3u);
    const int64_t rows = tape.desc(x).shape[0];
    const ValueId flat = tape.call("reshape", {x}, {{"shape", Shape{rows, 4}}});
    const ValueId out = tape.call("matmul", {flat, p[0]}, {{"transpose_b", int64_t{1}}});
    return mean_squared_error(tape, out, y);
  };
  std::vector<float> x(40), y(10);
  for (size_t i = 0; i < 40; ++i) x[i] = static_cast<float>(i * 5 % 13) / 13;
  for (size_t i = 0; i < 10; ++i) y[i] = x[4 * i] + 2 * x[4 * i + 3];
  ParameterReplicas one(runtime(), list, queues(1), momentum(), options),
      two(runtime(), list, queues(2), momentum(), options);
  double first = 0, last = 0;
  for (int i = 0; i < 30; ++i) {
    last = data_parallel_step(one, {x, y, 10}, step);
    if (i == 0) first = last;
    EXPECT_NEAR(data_parallel_step(two, {x, y, 10}, step), last, 1e-6);
  }
  EXPECT_LT(last, 0.1 * first);
}

TEST_F(ParameterReplicasTest, MistakesAreNamed) {
  const auto refused = [](const char* words, auto&& body) {
    expect_has(error_of(ErrorCode::kUsage, body), words);
  };
  const ToyBatch toy(4, 1);
  ParameterReplicas replicas(runtime(), mlp(), queues(2), momentum());
  refused("without rows", [&] { data_parallel_step(replicas, toy.batch().rows(0, 0), mlp_step); });
  refused("the step function must return", [&] {
    data_parallel_step(replicas, toy.batch(),
                       [](Tape& tape, const std::vector<ValueId>& p, ValueId x, ValueId) {
                         LossSums out;
                         out.loss = tape.call("matmul", {x, p[0]}, {{"transpose_b", int64_t{1}}});
                         out.denominator = out.loss;
                         return out;
                       });
  });
  refused("matmul", [&] {  // the op's own words
    data_parallel_step(replicas, {std::vector<float>(20), toy.y}, mlp_step);
  });
  refused("without gradients", [&] {
    replicas.zero_grad();
    replicas.step();
  });
  refused("before the first sync_grads", [&] { replicas.loss(); });
  refused("is empty",
          [&] { ParameterReplicas(runtime(), ParameterList(), queues(1), momentum()); });
  refused("two parameters \"w1\"", [] { mlp().constant("w1", {1}, 0); });
  refused("2 values for the parameter \"v\" [3]", [] { ParameterList().values("v", {3}, {1, 2}); });
  ParameterOptions options;
  options.sample = Shape{9};
  ParameterReplicas wide(runtime(), mlp(), queues(1), momentum(), options);
  refused("prepared for samples [9]", [&] { data_parallel_step(wide, toy.batch(), mlp_step); });
  EXPECT_GT(data_parallel_step(replicas, toy.batch(), mlp_step), 0);
}

}  // namespace
}  // namespace testing
}  // namespace netcl
