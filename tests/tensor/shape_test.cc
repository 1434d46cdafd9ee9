// Shapes, their text, their symbolic batch, and broadcasting.
#include "core/tensor/shape.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace netcl {
namespace {

TEST(ShapeTest, TextAndElements) {
  EXPECT_EQ(Shape{}.str(), "[]");
  EXPECT_EQ(Shape{}.num_elements(), 1);
  EXPECT_EQ((Shape{3, 4}).str(), "[3,4]");
  EXPECT_EQ((Shape{3, 4}).num_elements(), 12);
  EXPECT_EQ((Shape{3, 0}).num_elements(), 0);
  EXPECT_EQ((Shape{-1, 64}).str(), "[B,64]");
  EXPECT_EQ((Shape{-16, 2}).str(), "[16B,2]");
}

TEST(ShapeTest, SymbolicDimensionsGrowWithTheBatch) {
  EXPECT_TRUE((Shape{-1, 64}).symbolic());
  EXPECT_FALSE((Shape{1, 64}).symbolic());
  EXPECT_EQ((Shape{-3, 2}).with_batch(5), (Shape{15, 2}));
  EXPECT_EQ((Shape{-3, 2}).with_batch(0), (Shape{0, 2}));
  EXPECT_EQ((Shape{4, 2}).with_batch(5), (Shape{4, 2}));
  EXPECT_THROW((Shape{-1}).num_elements(), Error);
}

TEST(ShapeTest, Broadcasts) {
  EXPECT_EQ(broadcast_shapes({3, 1}, {4}, "add"), (Shape{3, 4}));
  EXPECT_EQ(broadcast_shapes({}, {2, 3}, "add"), (Shape{2, 3}));
  EXPECT_EQ(broadcast_shapes({-1, 5}, {5}, "add"), (Shape{-1, 5}));
  EXPECT_EQ(broadcast_shapes({0, 5}, {1, 5}, "add"), (Shape{0, 5}));
  try {
    broadcast_shapes({3, 2}, {4, 2}, "add");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    for (const char* part : {"add", "[3,2]", "[4,2]"})
      EXPECT_NE(e.message().find(part), std::string::npos) << e.message();
  }
}

TEST(ShapeTest, CrossesTheBoundary) {
  for (const TensorDesc& desc : {TensorDesc{DType::kF32, {2, 3}}, TensorDesc{DType::kI32, {}},
                                 TensorDesc{DType::kU8, {-4, 1}}}) {
    EXPECT_EQ(desc_from_abi(to_abi(desc)), desc);
  }
  EXPECT_THROW(to_abi({DType::kF32, {1, 1, 1, 1, 1, 1, 1, 1, 1}}), Error);
  EXPECT_THROW(dtype_from_abi(99), Error);
  EXPECT_EQ((TensorDesc{DType::kU8, {3, 5}}).size_bytes(), 15u);
  EXPECT_EQ((TensorDesc{DType::kF32, {3, 5}}).size_bytes(), 60u);
  EXPECT_EQ((TensorDesc{DType::kI32, {3}}).str(), "i32[3]");
}

}  // namespace
}  // namespace netcl
