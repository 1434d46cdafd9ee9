// Fused ops in graphs: whatever is served, the values are those of the recorded ops; where nothing
// is served the graph is the one that would have been recorded without them.
#include "core/graph/lower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "core/autograd/backward.h"
#include "core/autograd/fused_gradient.h"
#include "core/base/error.h"
#include "core/graph/passes.h"
#include "core/ops/case_inputs.h"
#include "core/ops/fused.h"
#include "core/ops/fused_reference.h"
#include "core/ops/host_recorder.h"

namespace netcl {
namespace testing {
namespace {

using Values = std::vector<ValueId>;

// How a layer declares a part of itself: as a fused op, or not at all.
using Fuse = std::function<Values(Recorder&, const char* op, const Values& in, const Values& out)>;

Values declared(Recorder& r, const char* op, const Values& in, const Values& out) {
  return r.fused(op, in, {{"size", int64_t{3}}}, out);
}
Values undeclared(Recorder&, const char*, const Values&, const Values& out) { return out; }

struct Case {
  std::string name;
  // Records a model's middle part from x (f32[B,6]) and the parameters w (f32[6]) and m (f32[6,6]).
  std::function<ValueId(Recorder&, ValueId x, ValueId w, ValueId m, const Fuse&)> record;
};

ValueId gate(Recorder& r, ValueId x, ValueId w, const Fuse& fuse) {
  const ValueId inner = r.call("mul", {x, w});
  const ValueId y = r.call("mul", {x, r.call("sigmoid", {inner})});
  return fuse(r, "test.gate", {x, w}, {y})[0];
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"Gate",
       [](Recorder& r, ValueId x, ValueId w, ValueId, const Fuse& f) { return gate(r, x, w, f); }},
      {"TwoOfThem", [](Recorder& r, ValueId x, ValueId w, ValueId,
                       const Fuse& f) { return gate(r, gate(r, x, w, f), w, f); }},
      // The output of a matmul is an input: its activation is recorded in the fused op.
      {"ActivationOfAMatmul",
       [](Recorder& r, ValueId x, ValueId, ValueId m, const Fuse& f) {
         const ValueId z = r.call("matmul", {x, m});
         return f(r, "test.relu", {z}, {r.call("relu", {z})})[0];
       }},
      {"MatmulInside",
       [](Recorder& r, ValueId x, ValueId w, ValueId m, const Fuse& f) {
         const ValueId y = r.call("tanh", {r.call("matmul", {x, m, w})});
         return f(r, "test.dense", {x, m, w}, {y})[0];
       }},
      // The gradients of both inputs are one value, that of the output.
      {"Sum",
       [](Recorder& r, ValueId x, ValueId, ValueId m, const Fuse& f) {
         const ValueId z = r.call("matmul", {x, m});
         return f(r, "test.sum", {x, z}, {r.call("add", {x, z})})[0];
       }},
      // Of three outputs one is used, one reaches the loss twice, one is an integer.
      {"SeveralOutputs",
       [](Recorder& r, ValueId x, ValueId w, ValueId, const Fuse& f) {
         const ValueId a = r.call("mul", {x, w}), b = r.call("exp", {a}), c = r.call("neg", {b});
         const ValueId i = r.call("argmax", {x}, {{"axis", int64_t{1}}});
         const Values own = f(r, "test.many", {x, w}, {a, b, c, i});
         const ValueId hot = r.call("one_hot", {own[3]}, {{"classes", int64_t{6}}});
         return r.call("mul", {r.call("add", {own[1], r.call("sin", {own[1]})}), hot});
       }},
      {"Views",
       [](Recorder& r, ValueId x, ValueId w, ValueId, const Fuse& f) {
         const ValueId a = r.call("mul", {x, w});
         const ValueId flat = r.call("reshape", {a}, {{"shape", Shape{3 * r.desc(x).shape[0], 2}}});
         const ValueId own = f(r, "test.flat", {x, w}, {flat})[0];
         return r.call("reshape", {r.call("sin", {own})}, {{"shape", r.desc(x).shape}});
       }},
      // A norm: an op with several outputs, of which the gradient needs those inside.
      {"Norm",
       [](Recorder& r, ValueId x, ValueId w, ValueId, const Fuse& f) {
         const ValueId y = r.call("rms_norm", {x, w}, {{"dims", int64_t{1}}});
         return f(r, "test.norm", {x, w}, {r.call("tanh", {y})})[0];
       }},
      // Nothing wanted lies before it: no gradient at all.
      {"OfTheInputAlone",
       [](Recorder& r, ValueId x, ValueId w, ValueId, const Fuse& f) {
         return r.call("mul", {f(r, "test.tanh", {x}, {r.call("tanh", {x})})[0], w});
       }},
      // An input through which no gradient flows.
      {"Comparison",
       [](Recorder& r, ValueId x, ValueId w, ValueId, const Fuse& f) {
         const ValueId y = r.call("mul", {r.call("sign", {x}), w});
         return f(r, "test.sign", {x, w}, {y})[0];
       }},
  };
  return all;
}

// A whole step: loss and gradients, as outputs.
Graph step(const Case& c, const Fuse& fuse, bool recompute = false) {
  Graph g;
  const ValueId x = g.external("x", {DType::kF32, {-1, 6}});
  const ValueId w = g.external("w", {DType::kF32, {6}});
  const ValueId m = g.external("m", {DType::kF32, {6, 6}});
  const size_t begin = g.nodes().size();
  const ValueId y = c.record(g, g.call("matmul", {x, m}), w, m, fuse);
  const size_t end = g.nodes().size();
  for (size_t i = begin; i < end; ++i) {
    for (const ValueId v : g.nodes()[i].out) g.set_origin(v, "the part");
  }
  const ValueId loss = g.call("sum", {g.call("mul", {y, y})});
  std::vector<NodeRange> ranges;
  if (recompute) ranges.push_back({begin, end});
  const auto grads = gradients(g, loss, std::nullopt, {w, m, x}, ranges);
  g.output("y", y);
  g.output("loss", loss);
  const char* names[] = {"grad/w", "grad/m", "grad/x"};
  for (size_t i = 0; i < 3; ++i) {
    if (grads[i]) g.output(names[i], *grads[i]);
  }
  g.leave_out({"fuse_elementwise"});  // the ops themselves are looked at
  run_passes(g);
  return g;
}

std::map<std::string, HostTensor> evaluate(const Graph& g, int64_t batch) {
  std::map<ValueId, HostTensor> values;
  for (const Graph::Place& place : g.externals()) {
    values[place.value] = random_tensor(g.desc(place.value).shape.with_batch(batch), -1, 1,
                                        static_cast<uint32_t>(place.name[0]));
  }
  for (const Node& node : g.nodes()) {
    std::vector<HostTensor> in, out;
    for (const ValueId v : node.in) in.push_back(values.at(v));
    if (node.fused) {
      out = fused_reference(*node.fused, batch, in);
    } else {
      HostRecorder host;
      Values ids;
      for (HostTensor& t : in) ids.push_back(host.input(t));
      for (const ValueId v : host.apply(node.op->name, ids, node.attrs.with_batch(batch)))
        out.push_back(host.value(v));
    }
    for (size_t k = 0; k < node.out.size(); ++k) values[node.out[k]] = out[k];
  }
  std::map<std::string, HostTensor> out;
  for (const Graph::Place& place : g.outputs()) out[place.name] = values.at(place.value);
  return out;
}

void expect_equal(const Graph& a, const Graph& b) {
  for (const int64_t batch : {int64_t{5}, int64_t{1}, int64_t{0}}) {
    const auto want = evaluate(a, batch), got = evaluate(b, batch);
    ASSERT_EQ(want.size(), got.size());
    for (const auto& [name, tensor] : want) {
      ASSERT_EQ(got.at(name).desc, tensor.desc) << name;
      for (size_t i = 0; i < tensor.data.size(); ++i) {
        // Doubles, added up in another order.
        ASSERT_NEAR(got.at(name).data[i], tensor.data[i], 1e-12 * (1 + std::fabs(tensor.data[i])))
            << name << " element " << i << " of a batch of " << batch;
      }
    }
  }
}

// What runs, whatever the order: op, attributes and output of every node.
std::vector<std::string> work(const Graph& g) {
  std::vector<std::string> out;
  for (const Node& node : g.nodes())
    out.push_back(node.op->name + " " + node.attrs.str() + " " + g.desc(node.out[0]).str());
  std::sort(out.begin(), out.end());
  return out;
}

size_t count_fused(const Graph& g) {
  return static_cast<size_t>(std::count_if(g.nodes().begin(), g.nodes().end(),
                                           [](const Node& n) { return n.fused != nullptr; }));
}

class LowerTest : public ::testing::TestWithParam<Case> {};

TEST_P(LowerTest, OfWhatIsNotServedNothingIsLeft) {
  for (const bool recompute : {false, true}) {
    SCOPED_TRACE(recompute ? "recomputed" : "kept");
    const Graph plain = step(GetParam(), undeclared, recompute);
    const Graph fused = step(GetParam(), declared, recompute);
    EXPECT_FALSE(has_fused(plain));
    EXPECT_TRUE(has_fused(fused));
    const Graph lowered = lower(fused, [](const Node&) { return false; });
    EXPECT_FALSE(has_fused(lowered));
    EXPECT_EQ(work(lowered), work(plain)) << lowered.str() << "\n" << plain.str();
    expect_equal(plain, lowered);
  }
}

TEST_P(LowerTest, WhateverIsServedTheValuesAreEqual) {
  const Graph plain = step(GetParam(), undeclared), fused = step(GetParam(), declared);
  expect_equal(plain, fused);
  for (const bool forward : {false, true}) {
    for (const bool backward : {false, true}) {
      SCOPED_TRACE(::testing::Message() << "forward " << forward << ", backward " << backward);
      const Graph lowered =
          lower(fused, [&](const Node& node) { return node.fused->forward ? backward : forward; });
      expect_equal(plain, lowered);
      if (!forward || !backward) continue;
      EXPECT_EQ(count_fused(lowered), count_fused(fused));
    }
  }
}

TEST_P(LowerTest, AHostRunsTheRecordedOps) {
  for (const Fuse& fuse : {Fuse(declared), Fuse(undeclared)}) {
    HostRecorder host;
    const ValueId x = host.input(random_tensor({4, 6}, -1, 1, 1));
    const ValueId w = host.input(random_tensor({6}, -1, 1, 2));
    const ValueId m = host.input(random_tensor({6, 6}, -1, 1, 3));
    GetParam().record(host, x, w, m, fuse);
    for (const Node& node : host.nodes()) EXPECT_EQ(node.fused, nullptr);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, LowerTest, ::testing::ValuesIn(cases()),
                         [](const auto& c) { return c.param.name; });

// An intermediate value and the op's own output are used outside as well: they are computed there,
// too, and their gradients flow.
TEST(FusedTest, ValuesInBetweenStayUsable) {
  const Case c = {"UsedOutside", [](Recorder& r, ValueId x, ValueId w, ValueId, const Fuse& f) {
                    const ValueId a = r.call("mul", {x, w}), y = r.call("exp", {a});
                    const ValueId own = f(r, "test.exp", {x, w}, {y})[0];
                    return r.call("add", {r.call("mul", {own, a}), y});
                  }};
  const Graph plain = step(c, undeclared), fused = step(c, declared);
  expect_equal(plain, fused);
  expect_equal(plain, lower(fused, [](const Node&) { return false; }));
}

TEST(FusedTest, AServedOpIsLessWork) {
  const Graph plain = step(cases()[0], undeclared), fused = step(cases()[0], declared);
  const Graph served = lower(fused, [](const Node&) { return true; });
  EXPECT_LT(served.nodes().size(), plain.nodes().size());
  for (const Node& node : served.nodes()) EXPECT_NE(node.op->name, "sigmoid");
  // A forward op alone leaves what the gradient needs, made again where it is needed.
  const Graph forward = lower(fused, [](const Node& n) { return n.fused->forward == nullptr; });
  EXPECT_EQ(std::count_if(forward.nodes().begin(), forward.nodes().end(),
                          [](const Node& node) { return node.op->name == "sigmoid"; }),
            1);
}

TEST(FusedTest, TheGraphNamesTheOpItsInputsAndItsGradient) {
  const std::string text = step(cases()[0], declared).str();
  EXPECT_NE(text.find(" = test.gate(v3, v1) size=3 : f32[B,6]"), std::string::npos) << text;
  // inputs, output, gradient of the output
  EXPECT_NE(text.find(" = test.gate.grad(v3, v1, v7, v"), std::string::npos) << text;
}

TEST(FusedTest, MessagesNameThePart) {
  const Graph lowered = lower(step(cases()[0], declared), [](const Node&) { return false; });
  for (const Node& node : lowered.nodes()) {
    if (node.op->name != "sigmoid") continue;
    EXPECT_EQ(lowered.describe(node.out[0]), "the output of sigmoid in the part");
  }
}

// The body's gradient against central differences of the body, in double.
TEST(FusedTest, TheGradientIsThatOfTheBody) {
  Graph g;
  const ValueId x = g.external("x", {DType::kF32, {-1, 6}}),
                w = g.external("w", {DType::kF32, {6}});
  const ValueId a = g.call("mul", {x, w});
  const auto forward = cut_out(g, "test.op", {x, w}, {g.call("sin", {a}), g.call("exp", {a})});
  const auto gradient = gradient_of(forward, {true, true}, {true, true});
  EXPECT_EQ(gradient->row.name, "test.op.grad");
  EXPECT_EQ(gradient->num_inputs(), 6u);
  const int64_t batch = 3;
  std::vector<HostTensor> in = {random_tensor({batch, 6}, -1, 1, 1), random_tensor({6}, -1, 1, 2)};
  std::vector<HostTensor> all = in;
  for (const HostTensor& t : fused_reference(*forward, batch, in)) all.push_back(t);
  for (uint32_t k = 0; k < 2; ++k) all.push_back(random_tensor({batch, 6}, -1, 1, 7 + k));
  const auto weighted = [&](const std::vector<HostTensor>& inputs) {
    double sum = 0;
    const auto out = fused_reference(*forward, batch, inputs);
    for (size_t k = 0; k < 2; ++k) {
      for (size_t i = 0; i < out[k].data.size(); ++i) sum += out[k].data[i] * all[4 + k].data[i];
    }
    return sum;
  };
  const auto grads = fused_reference(*gradient, batch, all);
  for (size_t k = 0; k < 2; ++k) {
    for (size_t i = 0; i < in[k].data.size(); ++i) {
      constexpr double kStep = 1e-5;
      std::vector<HostTensor> up = in, down = in;
      up[k].data[i] += kStep;
      down[k].data[i] -= kStep;
      const double want = (weighted(up) - weighted(down)) / (2 * kStep);
      EXPECT_NEAR(grads[k].data[i], want, 1e-8 * (1 + std::fabs(want)));
    }
  }
}

// In mixed precision the casts are part of the body, and gradients have their value's type.
TEST(FusedTest, MixedPrecision) {
  const auto record = [](const Fuse& fuse) {
    Graph g;
    const ValueId x = g.external("x", {DType::kF32, {-1, 6}});
    const ValueId m = g.external("m", {DType::kF32, {6, 6}});
    g.set_autocast(DType::kBF16);
    const ValueId h = g.call("matmul", {x, m});
    const ValueId y = fuse(g, "test.dense", {h, m}, {g.call("exp", {g.call("matmul", {h, m})})})[0];
    g.set_autocast(std::nullopt);
    const ValueId loss = g.call("sum", {g.call("cast", {y}, {{"dtype", std::string("f32")}})});
    g.output("loss", loss);
    g.output("grad/m", *gradients(g, loss, std::nullopt, {m})[0]);
    g.leave_out({"fuse_elementwise"});  // the order of a sum's inputs may differ
    run_passes(g);
    return g;
  };
  const Graph plain = record(undeclared), fused = record(declared);
  EXPECT_EQ(fused.desc(fused.nodes().back().out[0]).dtype, DType::kF32);
  EXPECT_EQ(work(lower(fused, [](const Node&) { return false; })), work(plain));
  expect_equal(plain, fused);
}

TEST(FusedTest, AGradientHasNoGradient) {
  Graph g;
  const ValueId x = g.external("x", {DType::kF32, {-1, 6}});
  const ValueId y = declared(g, "test.exp", {x}, {g.call("exp", {x})})[0];
  const ValueId dx = *gradients(g, g.call("sum", {y}), std::nullopt, {x})[0];
  try {
    gradients(g, g.call("sum", {dx}), std::nullopt, {x});
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("op test.exp.grad"), std::string::npos) << e.message();
  }
}

std::string refusal(const std::function<void(Graph&, ValueId x, ValueId w)>& record) {
  Graph g;
  const ValueId x = g.external("x", {DType::kF32, {-1, 6}});
  const ValueId w = g.external("layers.0.w", {DType::kF32, {6}});
  try {
    record(g, x, w);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kPlugin);
    return e.message();
  }
  return "no error";
}

TEST(FusedTest, RefusalsSayWhatDoesNotFit) {
  const auto expect = [](const char* words,
                         const std::function<void(Graph&, ValueId x, ValueId w)>& record) {
    const std::string message = refusal(record);
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  const auto exp_as = [](const char* name) {
    return [name](Graph& g, ValueId x, ValueId) { g.fused(name, {x}, {}, {g.call("exp", {x})}); };
  };
  for (const char* name : {"exp", ".exp", "vendor.", ""})
    expect("names of fused ops are \"vendor.op\"", exp_as(name));
  expect("are those of gradients", exp_as("vendor.exp.grad"));
  expect("layers.0.w, f32[6], enters the ops between", [](Graph& g, ValueId x, ValueId w) {
    g.fused("a.b", {x}, {}, {g.call("mul", {x, w})});
  });
  expect("input 1, f32[6], is read by none", [](Graph& g, ValueId x, ValueId w) {
    g.fused("a.b", {x, w}, {}, {g.call("exp", {x})});
  });
  expect("output 0 is one of its inputs",
         [](Graph& g, ValueId x, ValueId) { g.fused("a.b", {x}, {}, {x}); });
  expect("layers.0.w, f32[6], enters", [](Graph& g, ValueId x, ValueId w) {
    g.fused("a.b", {x}, {}, {g.call("exp", {x}), w});
  });
  expect("input 1 is input 0 again", [](Graph& g, ValueId x, ValueId) {
    g.fused("a.b", {x, x}, {}, {g.call("exp", {x})});
  });
  expect("output 1 is output 0 again", [](Graph& g, ValueId x, ValueId) {
    const ValueId y = g.call("exp", {x});
    g.fused("a.b", {x}, {}, {y, y});
  });
  expect("it has no output", [](Graph& g, ValueId x, ValueId) { g.fused("a.b", {x}, {}, {}); });
  expect("output 0 is value 99, which does not exist",
         [](Graph& g, ValueId x, ValueId) { g.fused("a.b", {x}, {}, {99}); });
  expect("all_reduce lies between", [](Graph& g, ValueId x, ValueId) {
    const ValueId sum = g.call("sum", {x}, {{"axes", std::vector<int64_t>{0}}});
    g.fused("a.b", {x}, {}, {g.call("all_reduce", {sum})});
  });
  expect("dropout lies between", [](Graph& g, ValueId x, ValueId) {
    const ValueId random = g.external("random", {DType::kI32, {8}});
    g.fused("a.b", {x, random}, {}, {g.call("dropout", {x, random})});
  });
}

}  // namespace
}  // namespace testing
}  // namespace netcl
