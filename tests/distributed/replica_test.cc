// Replicas on a device: shards of a batch add up to the whole batch, random numbers included.
#include "core/distributed/replica.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/data/batches.h"
#include "tests/distributed/toy.h"

namespace netcl {
namespace testing {
namespace {

constexpr uint64_t kSeed = 17;

// One training step in which each replica computes its part of the batch and the parts' gradients
// are added on the host.
void step_of_all(const std::vector<ToyReplica*>& ranks, const std::vector<int64_t>& counts,
                 const Dataset& data, int64_t step) {
  Queue& queue = ranks[0]->replica->queue();
  std::vector<float> x(static_cast<size_t>(kToySamples) * 8);
  std::vector<int32_t> labels(static_cast<size_t>(kToySamples));
  BatchPlan plan(kToySamples, kToySamples, kSeed, true);
  const std::vector<int64_t> indices = plan.indices(step, 0);
  const auto n = static_cast<size_t>(ranks[0]->graphs.gradients.num_floats());
  std::vector<float> sum(n, 0.0f), mine(n);
  for (size_t r = 0; r < ranks.size(); ++r) {
    const IndexRange part = shard_slice(counts, r);
    fill_batch(data, indices.data() + part.first, static_cast<size_t>(part.count), x.data(),
               labels.data());
    ranks[r]->replica->stage(x.data(), labels.data(), part.count).wait();
    ranks[r]->replica->forward_backward(part.count, {kSeed, step, part.first});
    queue.cl().enqueueReadBuffer(ranks[r]->send, CL_TRUE, 0, n * sizeof(float), mine.data());
    for (size_t i = 0; i < n; ++i) sum[i] += mine[i];
  }
  for (ToyReplica* rank : ranks) {
    queue.cl().enqueueWriteBuffer(rank->recv, CL_TRUE, 0, n * sizeof(float), sum.data());
    rank->replica->update(step, 0.01);
  }
}

void expect_same_parameters(Replica& a, Replica& b, double tolerance) {
  const std::vector<float> x = a.read_parameters(), y = b.read_parameters();
  ASSERT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], tolerance) << "parameter " << i;
}

TEST(ReplicaTest, ShardsAddUpToTheBatch) {
  const Dataset data = toy_dataset();
  for (const bool dropout : {false, true}) {
    SCOPED_TRACE(dropout ? "with dropout" : "without dropout");
    // Momentum, not Adam: its steps are linear in the gradient, so rounding stays rounding.
    Optimizer sgd = Optimizer::sgd(0.01);
    sgd.momentum = 0.9;
    ToyReplica whole(true, dropout, sgd), first(false, dropout, sgd), second(false, dropout, sgd),
        third(false, dropout, sgd);
    for (int64_t step = 1; step <= 5; ++step) {
      step_of_all({&whole}, {kToySamples}, data, step);
      // An odd split, and a rank without samples.
      step_of_all({&first, &second, &third}, {120, kToySamples - 120, 0}, data, step);
    }
    // Sums over 203 samples in another order, five steps: some 1e-6 of values of order one.
    expect_same_parameters(*whole.replica, *first.replica, 5e-6);
    expect_same_parameters(*first.replica, *second.replica, 0);
    expect_same_parameters(*first.replica, *third.replica, 0);
  }
}

TEST(ReplicaTest, InitialValuesDependOnTheSeedAlone) {
  ToyReplica a, b;
  expect_same_parameters(*a.replica, *b.replica, 0);
  const std::vector<float> before = a.replica->read_parameters();
  b.replica->initialise(12);
  EXPECT_NE(b.replica->read_parameters(), before);
  for (size_t i = 0; i < a.optimizer.num_states(); ++i) {
    for (const float v : a.replica->read_state(i)) ASSERT_EQ(v, 0.0f);
  }
}

TEST(ReplicaTest, ArenasSurviveTheRoundTrip) {
  ToyReplica a;
  std::vector<float> values(static_cast<size_t>(a.graphs.parameters.num_floats()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  a.replica->write_parameters(values);
  a.replica->write_state(1, values);
  EXPECT_EQ(a.replica->read_parameters(), values);
  EXPECT_EQ(a.replica->read_state(1), values);
  EXPECT_THROW(a.replica->write_parameters({1.0f}), Error);
}

}  // namespace
}  // namespace testing
}  // namespace netcl
