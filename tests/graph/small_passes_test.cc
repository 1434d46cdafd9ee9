// fold_constants, fuse_loss, relu_after_pool and join_pads by the graph's text before and after.
#include <gtest/gtest.h>

#include "core/graph/passes/list.h"
#include "tests/graph/graph_text.h"

namespace netcl {
namespace testing {
namespace {

std::string after(void (*pass)(Graph&), const std::string& text) {
  Graph graph = read_graph(text);
  pass(graph);
  return graph.str();
}

TEST(FoldConstantsTest, InTheirSize) {
  EXPECT_EQ(after(fold_constants, R"(
      v0 = external x : f32[B,3]
      v1 = full() shape=[] value=2.0
      v2 = reshape(v1) shape=[1,1]
      v3 = broadcast_to(v2) shape=[B,3]
      v4 = broadcast_to(v0) shape=[2,B,3]
      output y = v3
      output z = v4)"),
            graph_text(R"(
      v0 = external x : f32[B,3]
      v3 = full() shape=[B,3] value=2 dtype=f32 : f32[B,3]
      v4 = broadcast_to(v0) shape=[2,B,3] : f32[2,B,3]
      output y = v3
      output z = v4)"));
}

TEST(FuseLossTest, LossAndGradientBecomeOne) {
  EXPECT_EQ(after(fuse_loss, R"(
      v0 = external x : f32[B,10]
      v1 = external labels : i32[B]
      v2, v3 = cross_entropy(v0, v1)
      v4 = sum(v2) axes=[0]
      v5 = full() shape=[B] value=1.0
      v6 = cross_entropy_grad(v0, v1, v5)
      output loss = v4
      output dx = v6)"),
            graph_text(R"(
      v0 = external x : f32[B,10]
      v1 = external labels : i32[B]
      v5 = full() shape=[B] value=1 dtype=f32 : f32[B]
      v2, v3, v6 = cross_entropy_with_grad(v0, v1, v5) ignore_index=-100 label_smoothing=0 : f32[B]
      v4 = sum(v2) axes=[0] keep=0 : f32[]
      output loss = v4
      output dx = v6)"));
}

TEST(FuseLossTest, NotIfTheGradientDependsOnTheLoss) {
  const std::string text = R"(
      v0 = external x : f32[B,10]
      v1 = external labels : i32[B]
      v2, v3 = cross_entropy(v0, v1)
      v4 = cross_entropy_grad(v0, v1, v2)
      output dx = v4)";
  EXPECT_EQ(after(fuse_loss, text), read_graph(text).str());
}

const char kPool[] = R"(
      v0 = external x : f32[B,2,4,4]
      v1 = external dy : f32[B,2,2,2]
      v2 = relu(v0)
      v3, v4 = max_pool2d(v2) kernel=[2,2] stride=[2,2] padding=[0,0]
      v5 = max_pool2d_grad(v1, v4) kernel=[2,2] stride=[2,2] padding=[0,0] input=[4,4]
      v6 = relu_grad(v5, v2)
      output y = v3
      output dx = v6
)";

TEST(ReluAfterPoolTest, BothWays) {
  const std::string text = after(relu_after_pool, kPool);
  for (const char* line :
       {"v7, v4 = max_pool2d(v0) ", "v3 = relu(v7) : f32[B,2,2,2]",
        "v10 = relu_grad(v1, v3) : f32[B,2,2,2]", "v6 = max_pool2d_grad(v10, v4) "})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  EXPECT_EQ(text.find("v2"), std::string::npos) << text;
}

TEST(ReluAfterPoolTest, NotIfTheResultIsNeededElsewhere) {
  for (const char* more : {"output r = v2", "output i = v4", "v7 = neg(v2)\noutput r = v7"}) {
    const std::string text = kPool + std::string(more);
    EXPECT_EQ(after(relu_after_pool, text), read_graph(text).str()) << more;
  }
}

TEST(JoinPadsTest, PartsThatMakeUpTheWhole) {
  EXPECT_EQ(after(join_pads, R"(
      v0 = external a : f32[2,3]
      v1 = external b : f32[1,3]
      v2 = external c : f32[4,3]
      v3 = pad(v2) low=[3,0] high=[0,0]
      v4 = pad(v1) low=[2,0] high=[4,0]
      v5 = add(v3, v4)
      v6 = pad(v0) low=[0,0] high=[5,0]
      v7 = add(v5, v6)
      output y = v7)"),
            graph_text(R"(
      v0 = external a : f32[2,3]
      v1 = external b : f32[1,3]
      v2 = external c : f32[4,3]
      v7 = concat(v0, v1, v2) axis=0 : f32[7,3]
      output y = v7)"));
}

TEST(JoinPadsTest, NotWithAGapOrAnOverlap) {
  for (const char* low : {"1", "3"}) {
    const std::string text = str_cat(R"(
      v0 = external a : f32[2,3]
      v1 = external b : f32[4,3]
      v2 = pad(v0) low=[0,0] high=[5,0]
      v3 = pad(v1) low=[)",
                                     low, ",0] high=[", low[0] == '1' ? "2" : "0", R"(,0]
      v4 = add(v2, v3)
      output y = v4)");
    EXPECT_EQ(after(join_pads, text), read_graph(text).str());
  }
}

}  // namespace
}  // namespace testing
}  // namespace netcl
