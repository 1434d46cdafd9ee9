// Passes by the graph's text before and after.
#include "core/graph/passes.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/graph/passes/list.h"

namespace netcl {
namespace {

TensorDesc f32(const Shape& shape) { return {DType::kF32, shape}; }

struct Dense {
  Dense() {
    x = graph.external("x", f32({-1, 4}));
    w = graph.external("w", f32({4, 3}));
  }
  Graph graph;
  ValueId x, w;
};

TEST(GraphTest, TextShowsTheWholeGraph) {
  Dense d;
  d.graph.output("y", d.graph.call("relu", {d.graph.call("matmul", {d.x, d.w})}));
  EXPECT_EQ(d.graph.str(),
            "v0 = external x : f32[B,4]\n"
            "v1 = external w : f32[4,3]\n"
            "v2 = matmul(v0, v1) transpose_a=0 transpose_b=0 activation=none : f32[B,3]\n"
            "v3 = relu(v2) : f32[B,3]\n"
            "output y = v3\n");
}

TEST(GraphTest, OutputsThatHaveNoMemoryOfTheirOwnAreCopied) {
  Dense d;
  const ValueId y = d.graph.call("relu", {d.x});
  d.graph.output("a", y);
  d.graph.output("b", y);                                                     // taken by a
  d.graph.output("c", d.graph.call("reshape", {y}, {{"shape", Shape{-4}}}));  // a view of a's
  d.graph.output("d", d.w);                                                   // an external
  ASSERT_EQ(d.graph.outputs().size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < i; ++j) {
      EXPECT_NE(d.graph.root(d.graph.outputs()[i].value), d.graph.root(d.graph.outputs()[j].value));
    }
    EXPECT_FALSE(d.graph.is_external(d.graph.root(d.graph.outputs()[i].value)));
  }
}

TEST(GraphTest, AnExternalIsGivenOnce) {
  Dense d;
  EXPECT_THROW(d.graph.external("x", f32({1})), Error);
}

TEST(DropDeadNodesTest, KeepsWhatOutputsNeed) {
  Dense d;
  const ValueId y = d.graph.call("exp", {d.x});
  d.graph.call("sin", {y});
  const ValueId dead = d.graph.call("cos", {d.w});
  d.graph.call("neg", {dead});
  d.graph.output("y", d.graph.call("neg", {y}));
  drop_dead(d.graph);
  EXPECT_EQ(d.graph.str(),
            "v0 = external x : f32[B,4]\n"
            "v1 = external w : f32[4,3]\n"
            "v2 = exp(v0) : f32[B,4]\n"
            "v6 = neg(v2) : f32[B,4]\n"
            "output y = v6\n");
}

TEST(FuseTest, AnActivationMovesIntoTheMatmul) {
  for (const char* name : {"relu", "tanh", "sigmoid"}) {
    Dense d;
    d.graph.output("y", d.graph.call(name, {d.graph.call("matmul", {d.x, d.w})}));
    run_passes(d.graph);
    EXPECT_EQ(d.graph.str(),
              std::string("v0 = external x : f32[B,4]\n"
                          "v1 = external w : f32[4,3]\n"
                          "v3 = matmul(v0, v1) transpose_a=0 transpose_b=0 activation=") +
                  name + " : f32[B,3]\noutput y = v3\n");
  }
}

// What must stay: build it, run the pass, expect the text unchanged.
void expect_untouched(Dense& d) {
  const std::string before = d.graph.str();
  fuse_matmul_activation(d.graph);
  EXPECT_EQ(d.graph.str(), before);
}

TEST(FuseTest, NotIfTheSumIsUsedElsewhere) {
  Dense d;
  const ValueId z = d.graph.call("matmul", {d.x, d.w});
  d.graph.output("y", d.graph.call("mul", {d.graph.call("relu", {z}), z}));
  expect_untouched(d);
}

TEST(FuseTest, NotIfTheSumIsAnOutput) {
  Dense d;
  const ValueId z = d.graph.call("matmul", {d.x, d.w});
  d.graph.output("z", z);
  d.graph.output("y", d.graph.call("relu", {z}));
  expect_untouched(d);
}

TEST(FuseTest, NotThroughAViewOrAnotherOp) {
  Dense d;
  const ValueId z = d.graph.call("matmul", {d.x, d.w});
  const ValueId flat = d.graph.call("reshape", {z}, {{"shape", Shape{-3}}});
  d.graph.output("y", d.graph.call("relu", {flat}));
  d.graph.output("s", d.graph.call("tanh", {d.graph.call("exp", {d.x})}));
  d.graph.output("t", d.graph.call("sigmoid", {d.x}));
  expect_untouched(d);
}

TEST(FuseTest, NotAnActivationThatTheMatmulDoesNotKnow) {
  Dense d;
  d.graph.output("y", d.graph.call("gelu", {d.graph.call("matmul", {d.x, d.w})}));
  expect_untouched(d);
}

TEST(FuseTest, NotASecondActivation) {
  Dense d;
  const ValueId z = d.graph.call("matmul", {d.x, d.w}, {{"activation", std::string("tanh")}});
  d.graph.output("y", d.graph.call("relu", {z}));
  expect_untouched(d);
}

TEST(FuseTest, OnlyTheFirstOfTwoInARow) {
  Dense d;
  const ValueId z = d.graph.call("relu", {d.graph.call("matmul", {d.x, d.w})});
  d.graph.output("y", d.graph.call("tanh", {z}));
  fuse_matmul_activation(d.graph);
  ASSERT_EQ(d.graph.nodes().size(), 2u);
  EXPECT_EQ(d.graph.nodes()[0].attrs.text("activation"), "relu");
  EXPECT_EQ(d.graph.nodes()[1].op->name, "tanh");
}

}  // namespace
}  // namespace netcl
