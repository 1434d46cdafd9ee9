// Every collective by itself on tensors of 1, 2 and 3 queues, against plain loops in rank order.
#include "core/distributed/collectives.h"

#include "tests/library/library.h"

namespace netcl {
namespace testing {
namespace {

// Whole numbers, so that sums and means of up to three are exact in any order.
float element(uint32_t rank, int64_t i) {
  return static_cast<float>((static_cast<int64_t>(rank) * 7 + i * 3) % 11 - 4);
}

std::vector<float> contribution(uint32_t rank, int64_t count) {
  std::vector<float> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(element(rank, i));
  return out;
}

float reduced(ReduceOp op, uint32_t n, int64_t i) {
  float out = element(0, i);
  for (uint32_t r = 1; r < n; ++r) {
    const float x = element(r, i);
    if (op == ReduceOp::kSum || op == ReduceOp::kMean) out += x;
    if (op == ReduceOp::kProd) out *= x;
    if (op == ReduceOp::kMax) out = std::max(out, x);
    if (op == ReduceOp::kMin) out = std::min(out, x);
  }
  return op == ReduceOp::kMean ? out / static_cast<float>(n) : out;
}

std::vector<float> all_reduced(ReduceOp op, uint32_t n, int64_t count) {
  std::vector<float> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(reduced(op, n, i));
  return out;
}

class CollectivesTest : public LibraryTest, public ::testing::WithParamInterface<uint32_t> {
 protected:
  CollectivesTest() : n_(GetParam()), group_(runtime(), queues(n_)) {}

  Tensor tensor(uint32_t rank, const std::vector<float>& values) {
    const auto count = static_cast<int64_t>(values.size());
    return Tensor::from_floats(group_.queue(rank), Shape{count}, values);
  }
  Tensor empty(uint32_t rank, int64_t count) {
    return tensor(rank, std::vector<float>(static_cast<size_t>(count), -77.0f));
  }
  Tensors contributions(int64_t count) {
    Tensors out;
    for (uint32_t r = 0; r < n_; ++r) out.push_back(tensor(r, contribution(r, count)));
    return out;
  }
  // Parts of a whole: none on rank 1, uneven elsewhere.
  std::vector<int64_t> counts(int64_t whole) const {
    std::vector<int64_t> out(n_, 0);
    for (uint32_t r = 0; r + 1 < n_; ++r) out[r] = r == 1 ? 0 : whole / 3;
    int64_t used = 0;
    for (const int64_t c : out) used += c;
    out.back() += whole - used;
    return out;
  }

  const uint32_t n_;
  QueueGroup group_;
};

constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMax, ReduceOp::kMin,
                             ReduceOp::kProd};
constexpr int64_t kCounts[] = {0, 1, 65, 100003};

TEST_P(CollectivesTest, AllReduceInPlaceAndToAnother) {
  for (const ReduceOp op : kOps) {
    for (const int64_t count : kCounts) {
      SCOPED_TRACE(str_cat("op ", static_cast<int>(op), ", ", count, " elements"));
      const std::vector<float> want = all_reduced(op, n_, count);
      const Tensors mine = contributions(count);
      Tensors other;
      for (uint32_t r = 0; r < n_; ++r) other.push_back(empty(r, count));
      all_reduce(group_, mine, other, op).wait();
      for (uint32_t r = 0; r < n_; ++r) {
        EXPECT_EQ(other[r].to_floats(), want);
        EXPECT_EQ(mine[r].to_floats(), contribution(r, count));
      }
      all_reduce(group_, mine, op).wait();
      for (uint32_t r = 0; r < n_; ++r) EXPECT_EQ(mine[r].to_floats(), want);
    }
  }
}

TEST_P(CollectivesTest, AMeanWeighsItsRanks) {
  const Tensors tensors = contributions(65);
  std::vector<double> weights;
  double sum = 0;
  for (uint32_t r = 0; r < n_; ++r) weights.push_back(r == 1 ? 0 : 1 + r);
  for (const double w : weights) sum += w;
  all_reduce(group_, tensors, ReduceOp::kMean, weights).wait();
  for (uint32_t r = 0; r < n_; ++r) {
    const std::vector<float> got = tensors[r].to_floats();
    for (int64_t i = 0; i < 65; ++i) {
      double want = 0;
      for (uint32_t s = 0; s < n_; ++s)
        want += weights[s] * static_cast<double>(element(s, i)) / sum;
      ASSERT_NEAR(got[static_cast<size_t>(i)], want, 1e-6);
    }
  }
}

TEST_P(CollectivesTest, BroadcastFromEveryRoot) {
  for (uint32_t root = 0; root < n_; ++root) {
    for (const int64_t count : kCounts) {
      const Tensors tensors = contributions(count);
      broadcast(group_, tensors, root).wait();
      for (uint32_t r = 0; r < n_; ++r)
        EXPECT_EQ(tensors[r].to_floats(), contribution(root, count));
    }
  }
}

TEST_P(CollectivesTest, ScatterAndGatherUnevenParts) {
  for (uint32_t root = 0; root < n_; ++root) {
    for (const int64_t count : kCounts) {
      SCOPED_TRACE(str_cat("root ", root, ", ", count, " elements"));
      const std::vector<float> whole = contribution(root, count);
      const std::vector<int64_t> sizes = counts(count);
      Tensors parts;
      for (uint32_t r = 0; r < n_; ++r) parts.push_back(empty(r, sizes[r]));
      scatter(group_, tensor(root, whole), parts, root).wait();
      auto at = whole.begin();
      for (uint32_t r = 0; r < n_; ++r) {
        EXPECT_EQ(parts[r].to_floats(), std::vector<float>(at, at + sizes[r])) << "rank " << r;
        at += sizes[r];
      }
      const Tensor back = empty(root, count);
      gather(group_, parts, back, root).wait();
      EXPECT_EQ(back.to_floats(), whole);
    }
  }
}

TEST_P(CollectivesTest, AllGatherUnevenParts) {
  for (const int64_t count : kCounts) {
    const std::vector<int64_t> sizes = counts(count);
    Tensors parts, wholes;
    std::vector<float> want;
    for (uint32_t r = 0; r < n_; ++r) {
      const std::vector<float> mine = contribution(r, sizes[r]);
      parts.push_back(tensor(r, mine));
      wholes.push_back(empty(r, count));
      want.insert(want.end(), mine.begin(), mine.end());
    }
    all_gather(group_, parts, wholes).wait();
    for (uint32_t r = 0; r < n_; ++r) EXPECT_EQ(wholes[r].to_floats(), want) << "rank " << r;
  }
}

TEST_P(CollectivesTest, ReduceScatterUnevenParts) {
  for (const ReduceOp op : kOps) {
    for (const int64_t count : kCounts) {
      const std::vector<int64_t> sizes = counts(count);
      const std::vector<float> whole = all_reduced(op, n_, count);
      Tensors parts;
      for (uint32_t r = 0; r < n_; ++r) parts.push_back(empty(r, sizes[r]));
      reduce_scatter(group_, contributions(count), parts, op).wait();
      auto at = whole.begin();
      for (uint32_t r = 0; r < n_; ++r) {
        EXPECT_EQ(parts[r].to_floats(), std::vector<float>(at, at + sizes[r])) << "rank " << r;
        at += sizes[r];
      }
    }
  }
}

TEST_P(CollectivesTest, HandlesCompleteInOrder) {
  const Tensors a = contributions(100), b = contributions(5000), c = contributions(3);
  CollectiveHandle first = all_reduce(group_, a);
  all_reduce(group_, b, ReduceOp::kMax);  // its handle is dropped
  CollectiveHandle third = broadcast(group_, c, n_ - 1);
  third.wait();
  first.wait();  // done already
  third.wait();
  for (uint32_t r = 0; r < n_; ++r) {
    EXPECT_EQ(a[r].to_floats(), all_reduced(ReduceOp::kSum, n_, 100));
    EXPECT_EQ(b[r].to_floats(), all_reduced(ReduceOp::kMax, n_, 5000));
    EXPECT_EQ(c[r].to_floats(), contribution(n_ - 1, 3));
  }
}

TEST_P(CollectivesTest, ABarrierWaitsForAllQueues) {
  barrier(group_).wait();
  std::vector<cl::Event> written(n_);
  const std::vector<float> values(1 << 20, 1.0f);
  Tensors tensors;
  for (uint32_t r = 0; r < n_; ++r) {
    tensors.push_back(empty(r, 1 << 20));
    group_.queue(r)->cl().enqueueWriteBuffer(tensors[r].buffer(), CL_FALSE, 0, values.size() * 4,
                                             values.data(), nullptr, &written[r]);
  }
  barrier(group_).wait();
  for (const cl::Event& event : written)
    EXPECT_EQ(event.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>(), CL_COMPLETE);
}

TEST_P(CollectivesTest, OtherTypes) {
  Tensors tensors;
  for (uint32_t r = 0; r < n_; ++r) {
    const std::vector<int32_t> mine = {static_cast<int32_t>(r), -5, 1 << 30};
    tensors.push_back(Tensor::from_host(group_.queue(r), {DType::kI32, Shape{3}}, mine.data()));
  }
  all_reduce(group_, tensors, ReduceOp::kMax).wait();
  for (const Tensor& tensor : tensors) {
    std::vector<int32_t> got(3);
    tensor.copy_to_host(got.data());
    EXPECT_EQ(got, (std::vector<int32_t>{static_cast<int32_t>(n_) - 1, -5, 1 << 30}));
  }
}

TEST_P(CollectivesTest, MistakesAreNamedAndLeaveTheGroupAlive) {
  Tensors tensors = contributions(8);
  const auto refused = [&](const char* words, auto&& body) {
    expect_has(error_of(ErrorCode::kUsage, body), words);
  };
  refused("give one a queue", [&] { all_reduce(group_, Tensors()); });
  refused("root 9 of a group", [&] { broadcast(group_, tensors, 9); });
  refused("weights for a group", [&] { all_reduce(group_, tensors, ReduceOp::kSum, {1.0}); });
  Tensors sizes = tensors;
  sizes.back() = empty(n_ - 1, 9);
  if (n_ > 1) refused("expected 8 elements", [&] { all_reduce(group_, sizes); });
  refused("the parts have", [&] { scatter(group_, empty(0, 99), tensors); });
  Tensors types = tensors;
  types.back() = Tensor(group_.queue(n_ - 1), {DType::kI32, Shape{8}});
  if (n_ > 1) refused("one data type", [&] { all_reduce(group_, types); });
  Tensors elsewhere = tensors;
  elsewhere[0] = Tensor(DeviceManager(runtime()).queues("cpu:0/4")[0], {DType::kF32, Shape{8}});
  refused("is not on the group's queue 0", [&] { all_reduce(group_, elsewhere); });
  all_reduce(group_, tensors).wait();
  EXPECT_EQ(tensors[0].to_floats(), all_reduced(ReduceOp::kSum, n_, 8));
}

INSTANTIATE_TEST_SUITE_P(Queues, CollectivesTest, ::testing::Values(1u, 2u, 3u));

class QueueGroupTest : public LibraryTest {};

TEST_F(QueueGroupTest, RefusesQueuesThatAreNoGroup) {
  expect_has(error_of(ErrorCode::kUsage, [&] { QueueGroup(runtime(), {}); }), "at least one queue");
  auto twice = queues(2);
  twice[1] = twice[0];
  expect_has(error_of(ErrorCode::kUsage, [&] { QueueGroup(runtime(), twice); }), "only 1");
}

TEST_F(QueueGroupTest, AFailedRankEndsTheOthersWaits) {
  QueueGroup group(runtime(), queues(3));
  const std::string words = error_of(ErrorCode::kInternal, [&] {
    group.on_ranks([&](uint32_t r) {
      if (r == 1) fail(ErrorCode::kInternal, "rank one has had enough");
      group.communicator(r).barrier("one that rank 1 never comes to");
    });
  });
  EXPECT_EQ(words, "rank one has had enough");
}

}  // namespace
}  // namespace testing
}  // namespace netcl
