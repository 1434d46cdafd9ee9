// Tensors on a device: contents, errors, and a pool that does not grow with the work.
#include "core/tensor/tensor.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "core/ops/op.h"
#include "tests/ops/device_fixture.h"

namespace netcl {
namespace testing {
namespace {

std::shared_ptr<Queue> new_queue() { return Queue::create(shared_device().device()); }

std::string error_of(const std::function<void()>& body, ErrorCode code = ErrorCode::kUsage) {
  try {
    body();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code);
    return e.message();
  }
  return "no error";
}

TEST(TensorTest, ContentsSurviveTheRoundTrip) {
  const auto queue = new_queue();
  std::vector<float> values(1031);
  std::iota(values.begin(), values.end(), -3.5f);
  Tensor x = Tensor::from_floats(queue, Shape{1031}, values);
  EXPECT_EQ(x.to_floats(), values);
  x.wait_to_read();
  const std::vector<int32_t> numbers = {-1, 0, 1 << 30};
  const Tensor i = Tensor::from_host(queue, {DType::kI32, {3}}, numbers.data());
  std::vector<int32_t> back(3);
  i.copy_to_host(back.data());
  EXPECT_EQ(back, numbers);
}

TEST(TensorTest, CopiesAndViewsShareMemory) {
  const auto queue = new_queue();
  const Tensor x = Tensor::from_floats(queue, Shape{2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor view(x, {DType::kF32, {6}});
  const std::vector<float> other = {6, 5, 4, 3, 2, 1};
  view.copy_from_host(other.data());
  EXPECT_EQ(x.to_floats(), other);
  EXPECT_NE(error_of([&] {
              Tensor(x, {DType::kF32, {7}});
            }).find("the sizes differ"),
            std::string::npos);
}

TEST(TensorTest, EmptyTensors) {
  const auto queue = new_queue();
  const Tensor x = Tensor::from_floats(queue, Shape{0, 3}, {});
  EXPECT_TRUE(x.to_floats().empty());
}

TEST(TensorTest, ItemNeedsOneElement) {
  const auto queue = new_queue();
  EXPECT_EQ(Tensor::from_floats(queue, Shape{1, 1}, {7}).item(), 7);
  EXPECT_EQ(Tensor::from_floats(queue, Shape{}, {8}).item(), 8);
  EXPECT_NE(error_of([&] {
              Tensor::from_floats(queue, Shape{2}, {1, 2}).item();
            }).find("one f32 element, this one is f32[2]"),
            std::string::npos);
  const int32_t one = 1;
  const Tensor i = Tensor::from_host(queue, {DType::kI32, {1}}, &one);
  EXPECT_NE(error_of([&] { i.item(); }).find("i32[1]"), std::string::npos);
  EXPECT_NE(error_of([&] { i.to_floats(); }).find("i32[1]"), std::string::npos);
  EXPECT_NE(error_of([&] { Tensor::from_floats(queue, Shape{2}, {1}); }).find("1 values"),
            std::string::npos);
}

TEST(QueueTest, MemoryIsUsedAgain) {
  const auto queue = new_queue();
  const void* first = nullptr;
  {
    const auto a = queue->allocate(1000, "a");
    EXPECT_GE(a->size_bytes(), 1000u);
    first = a->buffer()();
  }
  const size_t held = queue->pool_bytes();
  const auto b = queue->allocate(900, "b");  // the same rounded size
  EXPECT_EQ(b->buffer()(), first);
  EXPECT_EQ(queue->pool_bytes(), held);
  const auto c = queue->allocate(900, "c");  // b is in use
  EXPECT_NE(c->buffer()(), b->buffer()());
  EXPECT_EQ(queue->pool_bytes(), 2 * held);
}

TEST(QueueTest, TensorsMayOutliveTheirQueuesPool) {
  std::shared_ptr<Storage> storage;
  {
    const auto queue = new_queue();
    storage = queue->allocate(16, "a survivor");
  }
  storage.reset();
}

TEST(QueueTest, RefusesWhatTheDeviceCannotHold) {
  const auto queue = new_queue();
  const auto limit = static_cast<size_t>(queue->device().info().max_alloc_bytes);
  const std::string message = error_of(
      [&] { queue->allocate(limit + (size_t{2} << 20), "the weights"); }, ErrorCode::kDevice);
  EXPECT_NE(message.find("the weights needs"), std::string::npos) << message;
  EXPECT_EQ(queue->pool_bytes(), 0u);
}

TEST(QueueTest, ManyOpsKeepMemoryFlat) {
  DeviceFixture& f = shared_device();
  const auto queue = new_queue();
  Eager eager(f.kernels(), queue);
  const TensorDesc desc{DType::kF32, {64}};
  const Attrs attrs = complete_attrs(find_op("scale"), {{"factor", 1.0}, {"offset", 1.0}});
  Tensor x = Tensor::from_floats(queue, Shape{64}, std::vector<float>(64, 0.0f));
  size_t held = 0;
  constexpr int kOps = 20000;
  for (int i = 0; i < kOps; ++i) {
    x = eager.run(find_op("scale"), {x}, {desc}, attrs)[0];
    if (i == 10) held = queue->pool_bytes();
  }
  EXPECT_EQ(queue->pool_bytes(), held);
  EXPECT_EQ(x.to_floats(), std::vector<float>(64, static_cast<float>(kOps)));
}

}  // namespace
}  // namespace testing
}  // namespace netcl
