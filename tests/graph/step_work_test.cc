// The work of a step by the text of its graph.
#include "core/graph/step_work.h"

#include <gtest/gtest.h>

#include "tests/graph/graph_text.h"

namespace netcl {
namespace testing {
namespace {

TEST(StepWorkTest, ProductsCountMultiplications) {
  const Graph graph = read_graph(R"(
      v0 = external x : f32[B,20]
      v1 = external w : f32[30,20]
      v2 = matmul(v0, v1) transpose_b=1
      v3 = reshape(v2) shape=[B,5,6]
      v4 = relu(v3)
      output y = v4)");
  const StepWork work = work_of(graph, 7);
  EXPECT_EQ(work.launches, 2);  // the reshape costs nothing
  EXPECT_EQ(work.multiply_adds, 7 * 20 * 30);
  EXPECT_EQ(work.elements, 2 * 7 * 30);
}

TEST(StepWorkTest, ConvolutionsCountTapsOfTheirGroup) {
  const Graph graph = read_graph(R"(
      v0 = external x : f32[B,4,9,9]
      v1 = external w : f32[6,2,3,3]
      v2 = conv2d(v0, v1) stride=[2,2] padding=[1,1] dilation=[1,1] groups=2
      v3 = conv2d_grad_input(v2, v1) stride=[2,2] padding=[1,1] dilation=[1,1] groups=2 input=[9,9]
      output dx = v3)");
  const double one = 3.0 * 6 * 5 * 5 * 2 * 9;  // images, filters, positions, channels, taps
  EXPECT_EQ(work_of(graph, 3).multiply_adds, 2 * one);
}

TEST(StepWorkTest, AttentionCountsBothProducts) {
  const Graph graph = read_graph(R"(
      v0 = external q : f32[B,2,8,4]
      v1 = external k : f32[B,2,16,4]
      v2, v3 = scaled_dot_product_attention(v0, v1, v1)
      output y = v2)");
  EXPECT_EQ(work_of(graph, 3).multiply_adds, 2.0 * 3 * 2 * 8 * 16 * 4);
}

TEST(StepWorkTest, SumsUp) {
  StepWork work{1, 2, 3};
  work += {10, 20, 30};
  EXPECT_EQ(work.launches, 11);
  EXPECT_EQ(work.multiply_adds, 22);
  EXPECT_EQ(work.elements, 33);
}

}  // namespace
}  // namespace testing
}  // namespace netcl
