// The reverse walk: accumulation, what is walked, what is refused, a symbolic batch, and a small
// network against central differences.
#include "core/autograd/backward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/ops/case_inputs.h"
#include "core/ops/host_recorder.h"

namespace netcl {
namespace {

using Doubles = std::vector<double>;

ValueId f32(HostRecorder& r, const Shape& shape, Doubles data) {
  return r.input({{DType::kF32, shape}, std::move(data)});
}

TEST(BackwardTest, AddsContributions) {
  HostRecorder r;
  const ValueId x = f32(r, {2}, {3, -4});
  const ValueId y = r.call("add", {r.call("mul", {x, x}), r.call("exp", {x})});  // x^2 + e^x
  const auto g = gradients(r, y, std::nullopt, {x});
  EXPECT_NEAR(r.value(*g[0]).data[0], 6 + std::exp(3), 1e-12);
  EXPECT_NEAR(r.value(*g[0]).data[1], -8 + std::exp(-4), 1e-12);
}

TEST(BackwardTest, TakesASeed) {
  HostRecorder r;
  const ValueId x = f32(r, {2}, {3, -4}), seed = f32(r, {2}, {10, 100});
  const auto g = gradients(r, r.call("mul", {x, x}), seed, {x});
  EXPECT_EQ(r.value(*g[0]).data, (Doubles{60, -800}));
}

TEST(BackwardTest, WantedMayBeTheOutputOrInBetweenOrUnrelated) {
  HostRecorder r;
  const ValueId x = f32(r, {1}, {2}), other = f32(r, {1}, {5});
  const ValueId mid = r.call("mul", {x, x}), y = r.call("scale", {mid}, {{"factor", 3.0}});
  const auto g = gradients(r, y, std::nullopt, {y, mid, x, other});
  EXPECT_EQ(r.value(*g[0]).data[0], 1);
  EXPECT_EQ(r.value(*g[1]).data[0], 3);
  EXPECT_EQ(r.value(*g[2]).data[0], 12);
  EXPECT_FALSE(g[3].has_value());
}

TEST(BackwardTest, RecordsNothingForWhatNobodyWants) {
  HostRecorder r;
  const ValueId a = f32(r, {3, 4}, Doubles(12, 1.0)), b = f32(r, {4, 5}, Doubles(20, 1.0));
  const ValueId y = r.call("matmul", {a, b});
  const size_t before = r.nodes().size();
  EXPECT_TRUE(gradients(r, y, std::nullopt, {b})[0].has_value());
  EXPECT_EQ(r.nodes().size() - before, 2u);  // the seed and one product: none for a
  const size_t again = r.nodes().size();
  EXPECT_FALSE(gradients(r, y, std::nullopt, {f32(r, {1}, {1})})[0].has_value());
  EXPECT_EQ(r.nodes().size(), again);
}

TEST(BackwardTest, IntegersCutTheWay) {
  HostRecorder r;
  const ValueId x = f32(r, {3}, {-1, 0.5, 2}), zero = f32(r, {}, {0});
  const ValueId positive = r.call("less", {zero, x});
  const ValueId y = r.call("where", {positive, r.call("mul", {x, x}), zero});
  const auto g = gradients(r, y, std::nullopt, {x});
  EXPECT_EQ(r.value(*g[0]).data, (Doubles{0, 1, 4}));
  const ValueId mask = r.call("cast", {positive}, {{"dtype", std::string("f32")}});
  EXPECT_FALSE(gradients(r, mask, std::nullopt, {x})[0].has_value());
}

std::string error_of(HostRecorder& r, ValueId y, std::optional<ValueId> seed, ValueId wanted) {
  try {
    gradients(r, y, seed, {wanted});
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    return e.message();
  }
  return "no error";
}

TEST(BackwardTest, RefusesWithAReason) {
  HostRecorder r;
  const ValueId x = f32(r, {3}, {1, 2, 3});
  const ValueId y = r.call("relu_grad", {x, x});
  EXPECT_EQ(
      error_of(r, y, std::nullopt, x),
      "gradients: op relu_grad (node 0) lies between a wanted value and the output and is not "
      "differentiable");
  const ValueId i = r.call("argmax", {x});
  EXPECT_EQ(error_of(r, i, std::nullopt, x), "gradients: the output must be a float, is i32[]");
  const ValueId z = r.call("exp", {x});
  EXPECT_NE(error_of(r, z, f32(r, {1}, {1}), x).find("the seed must be f32[3]"), std::string::npos);
  EXPECT_NE(error_of(r, z, std::nullopt, 999).find("value 999"), std::string::npos);
  EXPECT_NE(error_of(r, 999, std::nullopt, x).find("output 999"), std::string::npos);
}

class TraceRecorder : public Recorder {
 public:
  ValueId value(const Shape& shape, DType dtype = DType::kF32) { return add_value({dtype, shape}); }

 protected:
  void recorded(const Node&) override {}
};

TEST(BackwardTest, SymbolicBatch) {
  TraceRecorder r;
  const ValueId x = r.value({-1, 64}), w = r.value({64, 10}), b = r.value({10}),
                shift = r.value({64});
  const ValueId labels = r.value({-1}, DType::kI32);
  const ValueId logits = r.call("matmul", {x, w, b}, {{"activation", std::string("tanh")}});
  const ValueId loss = r.call("sum", {r.apply("cross_entropy", {logits, labels})[0]});
  const auto g = gradients(r, loss, std::nullopt, {x, w, b});
  EXPECT_EQ(r.desc(*g[0]).shape, (Shape{-1, 64}));
  EXPECT_EQ(r.desc(*g[1]).shape, (Shape{64, 10}));
  EXPECT_EQ(r.desc(*g[2]).shape, (Shape{10}));
  const ValueId shifted = r.call("add", {x, shift});
  EXPECT_EQ(r.desc(*gradients(r, shifted, std::nullopt, {shift})[0]).shape, (Shape{64}));
}

// A mean over the batch divides by a count that is known only with the batch size: the traced
// nodes, replayed on the host at batch size 3, give the gradients of the plain host run.
TEST(BackwardTest, SymbolicCountEqualsConcreteOne) {
  for (const char* op : {"mean", "var"}) {
    const Attrs attrs{{"axes", std::vector<int64_t>{0}}};
    const HostTensor data = random_tensor({3, 2}, -1, 1, 11);
    TraceRecorder trace;
    const ValueId tx = trace.value({-1, 2});
    const ValueId ty = trace.call(op, {tx}, attrs);
    const ValueId tg = *gradients(trace, ty, std::nullopt, {tx})[0];
    EXPECT_EQ(trace.desc(tg).shape, (Shape{-1, 2}));
    HostRecorder replay;
    std::vector<ValueId> map(trace.num_values());
    map[tx] = replay.input(data);
    for (const Node& node : trace.nodes()) {
      std::vector<ValueId> in;
      for (const ValueId id : node.in) in.push_back(map[id]);
      const auto out = replay.apply(node.op->name, in, node.attrs.with_batch(3));
      for (size_t i = 0; i < out.size(); ++i) map[node.out[i]] = out[i];
    }
    HostRecorder host;
    const ValueId hx = host.input(data);
    const ValueId hg = *gradients(host, host.call(op, {hx}, attrs), std::nullopt, {hx})[0];
    const Doubles &a = replay.value(map[tg]).data, &b = host.value(hg).data;
    for (size_t i = 0; i < b.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-14) << op;
  }
}

// Loss of a two-layer network with dropout; the parameters come in as a list.
ValueId network_loss(HostRecorder& r, const std::vector<ValueId>& p) {
  const ValueId x = r.input(random_tensor({6, 5}, -1, 1, 1));
  const ValueId labels = r.input({{DType::kI32, {6}}, {0, 2, 1, -100, 2, 0}});
  const ValueId state = r.input({{DType::kI32, {8}}, {1, 2, 3, 0, 0, 0, 0, 0}});
  ValueId h = r.call("matmul", {x, p[0], p[1]}, {{"activation", std::string("tanh")}});
  h = r.call("dropout", {h, state}, {{"p", 0.25}});
  const ValueId mean = r.call("mean", {h}, {{"axes", std::vector<int64_t>{0}}});
  h = r.call("gelu", {r.call("sub", {h, mean})});
  const ValueId logits = r.call("matmul", {h, p[2]}, {{"transpose_b", int64_t{1}}});
  return r.call("sum", {r.apply("cross_entropy", {logits, labels})[0]});
}

TEST(BackwardTest, NetworkEqualsDifferences) {
  const std::vector<Shape> shapes = {{5, 7}, {7}, {3, 7}};
  std::vector<HostTensor> parameters;
  for (size_t i = 0; i < shapes.size(); ++i)
    parameters.push_back(random_tensor(shapes[i], -1, 1, 50 + i));
  const auto loss_of = [&](HostRecorder& r, std::vector<ValueId>& ids) {
    for (const HostTensor& t : parameters) ids.push_back(r.input(t));
    return network_loss(r, ids);
  };
  HostRecorder r;
  std::vector<ValueId> ids;
  const ValueId loss = loss_of(r, ids);
  const auto g = gradients(r, loss, std::nullopt, ids);
  for (size_t i = 0; i < parameters.size(); ++i) {
    for (size_t e = 0; e < parameters[i].data.size(); ++e) {
      double side[2];
      const double x = parameters[i].data[e];
      for (int s = 0; s < 2; ++s) {
        parameters[i].data[e] = x + (s == 0 ? -1e-5 : 1e-5);
        HostRecorder probe;
        std::vector<ValueId> probe_ids;
        const ValueId probe_loss = loss_of(probe, probe_ids);
        side[s] = probe.value(probe_loss).data[0];
      }
      parameters[i].data[e] = x;
      EXPECT_NEAR(r.value(*g[i]).data[e], (side[1] - side[0]) / 2e-5, 1e-8) << i << " " << e;
    }
  }
}

// Ranges recorded again give the same gradients, and the rules use the new values.
TEST(BackwardTest, RecomputedRangesGiveTheSameGradients) {
  std::vector<Doubles> results;
  for (const bool recompute : {false, true}) {
    HostRecorder r;
    const ValueId x = r.input(random_tensor({4, 5}, -1, 1, 1));
    const ValueId w = r.input(random_tensor({5, 5}, -1, 1, 2));
    const ValueId state = r.input({{DType::kI32, {8}}, {1, 2, 3, 0, 0, 0, 0, 0}});
    ValueId h = r.call("tanh", {r.call("matmul", {x, w})});
    const size_t begin = r.nodes().size();
    h = r.call("exp", {r.call("matmul", {h, w})});
    h = r.call("dropout", {h, state}, {{"p", 0.5}});
    h = r.call("all_reduce", {r.call("sigmoid", {h})});
    const size_t end = r.nodes().size();
    const ValueId y = r.call("sum", {r.call("mul", {h, h})});
    const size_t forward = r.nodes().size();
    std::vector<NodeRange> ranges;
    if (recompute) ranges.push_back({begin, end});
    const auto g = gradients(r, y, std::nullopt, {x, w}, ranges);
    for (const auto& id : g) results.push_back(r.value(*id).data);
    size_t exps = 0, sums = 0;
    for (size_t i = forward; i < r.nodes().size(); ++i) {
      exps += r.nodes()[i].op->name == "exp" ? 1 : 0;
      sums += r.nodes()[i].op->name == "all_reduce" ? 1 : 0;
    }
    EXPECT_EQ(exps, recompute ? 1u : 0u);
    EXPECT_EQ(sums, 1u);  // its gradient; the sum itself is kept
  }
  EXPECT_EQ(results[0], results[2]);
  EXPECT_EQ(results[1], results[3]);
}

}  // namespace
}  // namespace netcl
