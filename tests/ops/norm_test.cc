// Batch norm as it is put together: sums, forward, backward and running statistics. The gradient
// rule of batch_norm counts what flows through the sums, so it is checked on the composition.
#include <gtest/gtest.h>

#include <cmath>

#include "core/autograd/backward.h"
#include "core/ops/case_inputs.h"
#include "core/ops/host_recorder.h"

namespace netcl {
namespace {

constexpr uint64_t kSeed = 20240611;

struct BatchNorm {
  HostRecorder r;
  ValueId x, shift, weight, bias, sums, y;
};

void build(BatchNorm& b, const HostTensor& x, int64_t sync) {
  const Shape channels{x.desc.shape[1]};
  b.x = b.r.input(x);
  b.shift = b.r.input(random_tensor(channels, -0.5, 0.5, kSeed + 1));
  b.weight = b.r.input(random_tensor(channels, 0.5, 1.5, kSeed + 2));
  b.bias = b.r.input(random_tensor(channels, -1, 1, kSeed + 3));
  b.sums = b.r.call("batch_norm_sums", {b.x, b.shift});
  if (sync == 1) b.sums = b.r.call("all_reduce", {b.sums});
  b.y = b.r.call("batch_norm", {b.x, b.sums, b.shift, b.weight, b.bias},
                 {{"eps", 1e-3}, {"sync", sync}});
}

double objective(const HostTensor& x, const HostTensor& dy) {
  BatchNorm b;
  build(b, x, 0);
  double sum = 0;
  for (size_t i = 0; i < dy.data.size(); ++i) sum += dy.data[i] * b.r.value(b.y).data[i];
  return sum;
}

TEST(BatchNormTest, InputGradientEqualsDifferencesOfTheComposition) {
  for (const Shape& shape : {Shape{5, 3}, Shape{2, 3, 4}, Shape{3, 2, 2, 3}}) {
    for (const int64_t sync : {0, 1}) {
      HostTensor x = random_tensor(shape, -2, 2, kSeed);
      const HostTensor dy = random_tensor(shape, 0.5, 1.5, kSeed + 4);
      BatchNorm b;
      build(b, x, sync);
      const auto grads = gradients(b.r, b.y, b.r.input(dy), {b.x, b.sums, b.shift});
      ASSERT_TRUE(grads[0].has_value());
      EXPECT_FALSE(grads[1].has_value());
      EXPECT_FALSE(grads[2].has_value());
      const std::vector<double> analytic = b.r.value(*grads[0]).data;
      for (size_t e = 0; e < x.data.size(); ++e) {
        const double at = x.data[e], step = 1e-5;
        x.data[e] = at + step;
        const double above = objective(x, dy);
        x.data[e] = at - step;
        const double below = objective(x, dy);
        x.data[e] = at;
        EXPECT_NEAR(analytic[e], (above - below) / (2 * step), 1e-7) << shape.str() << " " << e;
      }
    }
  }
}

TEST(BatchNormTest, HalvesOfABatchGiveTheSumsOfTheWhole) {
  const HostTensor whole = random_tensor(Shape{6, 3, 4}, -2, 2, kSeed);
  const HostTensor shift = random_tensor(Shape{3}, -1, 1, kSeed + 1);
  std::vector<double> sum(7, 0.0);
  for (const auto& [first, count] : {std::pair<size_t, size_t>{0, 1}, {1, 5}, {6, 0}}) {
    HostTensor part{{DType::kF32, Shape{static_cast<int64_t>(count), 3, 4}}, {}};
    part.data.assign(whole.data.begin() + static_cast<ptrdiff_t>(first * 12),
                     whole.data.begin() + static_cast<ptrdiff_t>((first + count) * 12));
    HostRecorder r;
    const ValueId s = r.call("batch_norm_sums", {r.input(part), r.input(shift)});
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += r.value(s).data[i];
  }
  HostRecorder r;
  const ValueId s = r.call("batch_norm_sums", {r.input(whole), r.input(shift)});
  for (size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(sum[i], r.value(s).data[i], 1e-12);
  EXPECT_EQ(sum[6], 24);
}

TEST(BatchNormTest, RunningStatisticsOfFewElements) {
  const auto running = [](std::vector<double> sums) {
    HostRecorder r;
    const TensorDesc one{DType::kF32, Shape{1}};
    const std::vector<ValueId> out = r.apply("batch_norm_running",
                                             {r.input({{DType::kF32, Shape{3}}, std::move(sums)}),
                                              r.input({one, {2.0}}), r.input({one, {5.0}})},
                                             {{"momentum", 0.5}});
    return std::pair{r.value(out[0]).data[0], r.value(out[1]).data[0]};
  };
  EXPECT_EQ(running({0, 0, 0}), std::make_pair(2.0, 5.0));  // nothing seen
  EXPECT_EQ(running({3, 9, 1}), std::make_pair(3.5, 5.0));  // one element has no variance
  // Elements 2 + {1, 3}: mean 4, unbiased variance 2.
  EXPECT_EQ(running({4, 10, 2}), std::make_pair(3.0, 3.5));
}

}  // namespace
}  // namespace netcl
