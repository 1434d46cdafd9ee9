// What becomes a chain, by the graph's text before and after.
#include <gtest/gtest.h>

#include "core/graph/passes.h"
#include "core/graph/passes/list.h"
#include "tests/graph/graph_text.h"

namespace netcl {
namespace testing {
namespace {

std::string fused(const std::string& text) {
  Graph graph = read_graph(text);
  fuse_elementwise(graph);
  return graph.str();
}

void expect_untouched(const std::string& text) {
  const std::string before = read_graph(text).str();
  EXPECT_EQ(fused(text), before);
}

TEST(FuseElementwiseTest, OneAfterTheOther) {
  EXPECT_EQ(fused(R"(
      v0 = external x : f32[B,4]
      v1 = external b : f32[4]
      v2 = add(v0, v1) : f32[B,4]
      v3 = gelu(v2) : f32[B,4]
      v4 = scale(v3) factor=0.5 : f32[B,4]
      output y = v4)"),
            graph_text(R"(
      v0 = external x : f32[B,4]
      v1 = external b : f32[4]
      v4 = chain(v0, v1) program=add(x0,x1);gelu(t0);scale(t1,factor=0.5,offset=0) views= shape=[B,4] : f32[B,4]
      output y = v4)"));
}

TEST(FuseElementwiseTest, NotWhatSomebodyElseNeeds) {
  expect_untouched(R"(
      v0 = external x : f32[B,4]
      v1 = exp(v0)
      v2 = neg(v1)
      v3 = sum(v1) axes=[0]
      output y = v2
      output s = v3)");
  expect_untouched(R"(
      v0 = external x : f32[B,4]
      v1 = exp(v0)
      v2 = neg(v1)
      output e = v1
      output y = v2)");
}

TEST(FuseElementwiseTest, AResultThatIsUsedTwiceByOneOp) {
  EXPECT_EQ(fused(R"(
      v0 = external x : f32[B,4]
      v1 = exp(v0)
      v2 = mul(v1, v1)
      output y = v2)"),
            graph_text(R"(
      v0 = external x : f32[B,4]
      v2 = chain(v0) program=exp(x0);mul(t0,t0) views= shape=[B,4] : f32[B,4]
      output y = v2)"));
}

TEST(FuseElementwiseTest, ConstantsAndStretchedValues) {
  EXPECT_EQ(fused(R"(
      v0 = external x : f32[B,4]
      v1 = external s : f32[1]
      v2 = full() shape=[1] value=2.0
      v3 = broadcast_to(v1) shape=[B,4]
      v4 = mul(v0, v3)
      v5 = add(v4, v2)
      output y = v5)"),
            graph_text(R"(
      v0 = external x : f32[B,4]
      v1 = external s : f32[1]
      v5 = chain(v0, v1) program=full(value=2,dtype=f32);mul(x0,x1);add(t1,t0) views= shape=[B,4] : f32[B,4]
      output y = v5)"));
}

TEST(FuseElementwiseTest, ASmallResultThatIsStretchedIsComputedOnce) {
  expect_untouched(R"(
      v0 = external x : f32[B,4]
      v1 = external s : f32[4]
      v2 = exp(v1)
      v3 = mul(v0, v2)
      output y = v3)");
}

TEST(FuseElementwiseTest, OtherAxesAndPartsOfAnInput) {
  EXPECT_EQ(fused(R"(
      v0 = external x : f32[B,5,3,2]
      v1 = slice(v0) axes=[2] start=[1] stop=[2]
      v2 = permute(v1) axes=[0,3,1,2]
      v3 = neg(v2)
      output y = v3)"),
            graph_text(R"(
      v0 = external x : f32[B,5,3,2]
      v3 = chain(v0) program=neg(x0) views=0:cut(2,1,2)axes(0,3,1,2) shape=[B,2,5,1] : f32[B,2,5,1]
      output y = v3)"));
}

TEST(FuseElementwiseTest, ThroughAReshape) {
  EXPECT_EQ(fused(R"(
      v0 = external x : f32[B,6]
      v1 = external z : f32[B,2,3]
      v2 = exp(v0)
      v3 = reshape(v2) shape=[B,2,3]
      v4 = add(v3, v1)
      output y = v4)"),
            graph_text(R"(
      v0 = external x : f32[B,6]
      v1 = external z : f32[B,2,3]
      v5 = reshape(v0) shape=[B,2,3] : f32[B,2,3]
      v4 = chain(v5, v1) program=exp(x0);add(t0,x1) views= shape=[B,2,3] : f32[B,2,3]
      output y = v4)"));
}

TEST(FuseElementwiseTest, RoundingBetweenStaysVisible) {
  EXPECT_EQ(fused(R"(
      v0 = external x : f32[B,4]
      v1 = cast(v0) dtype=bf16
      v2 = neg(v1)
      v3 = cast(v2) dtype=f32
      output y = v3)"),
            graph_text(R"(
      v0 = external x : f32[B,4]
      v3 = chain(v0) program=cast(x0,dtype=bf16);neg(t0);cast(t1,dtype=f32) views= shape=[B,4] : f32[B,4]
      output y = v3)"));
}

TEST(FuseElementwiseTest, NoMoreInputsThanAChainTakes) {
  std::string text;
  for (int i = 0; i < 8; ++i) text += str_cat("v", i, " = external x", i, " : f32[3]\n");
  text += "v8 = add(v0, v1)\n";
  for (int i = 2; i < 8; ++i) text += str_cat("v", 7 + i, " = add(v", 6 + i, ", v", i, ")\n");
  Graph graph = read_graph(text + "output y = v14");
  fuse_elementwise(graph);
  ASSERT_EQ(graph.nodes().size(), 2u);
  EXPECT_EQ(graph.nodes()[0].in.size(), 6u);
  EXPECT_EQ(graph.nodes()[1].in.size(), 3u);
}

TEST(FuseElementwiseTest, OpsWithKernelsOfTheirOwnStay) {
  Graph graph = read_graph(R"(
      v0 = external x : f32[B,4]
      v1 = exp(v0)
      v2 = tanh(v1)
      v3 = neg(v2)
      v4 = scale(v3) factor=0.5
      output y = v4)");
  graph.keep_ops({"tanh"});
  fuse_elementwise(graph);
  ASSERT_EQ(graph.nodes().size(), 3u);
  EXPECT_EQ(graph.nodes()[0].op->name, "exp");
  EXPECT_EQ(graph.nodes()[1].op->name, "tanh");
  EXPECT_EQ(graph.nodes()[2].op->name, "chain");
}

TEST(FuseMatmulActivationTest, OpsWithKernelsOfTheirOwnStay) {
  Graph graph = read_graph(R"(
      v0 = external x : f32[B,4]
      v1 = external w : f32[4,3]
      v2 = matmul(v0, v1)
      v3 = tanh(v2)
      v4 = matmul(v0, v1)
      v5 = relu(v4)
      output t = v3
      output r = v5)");
  graph.keep_ops({"tanh"});
  fuse_matmul_activation(graph);
  ASSERT_EQ(graph.nodes().size(), 3u);
  EXPECT_EQ(graph.nodes()[1].op->name, "tanh");
  EXPECT_EQ(graph.nodes()[2].attrs.text("activation"), "relu");
}

TEST(PassListTest, PassesAreLeftOutByName) {
  Graph graph = read_graph("v0 = external x : f32[4]\nv1 = exp(v0)\nv2 = neg(v1)\noutput y = v2");
  const std::string before = graph.str();
  graph.leave_out(passes_named({"all"}));
  for (const PassEffect& effect : run_passes(graph)) {
    EXPECT_TRUE(effect.left_out) << effect.name;
    EXPECT_EQ(effect.nodes_after, 2u);
  }
  EXPECT_EQ(graph.str(), before);
  graph.leave_out({});
  EXPECT_EQ(run_passes(graph).back().nodes_after, 1u);
  EXPECT_THROW(passes_named({"fuse_elementwyse"}), Error);
}

}  // namespace
}  // namespace testing
}  // namespace netcl
