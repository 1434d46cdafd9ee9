// The eager way on the first real OpenCL device: results, the cache of prepared ops, what a read
// waits for, errors of asynchronous work, and memory that stays flat however far the host runs
// ahead.
#include "core/autograd/eager.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "core/base/error.h"
#include "core/ops/op.h"
#include "tests/autograd/scale_provider.h"

namespace netcl {
namespace {

// User events are gates here; core has no use for them, so its loader does not forward them.
template <typename Function>
Function opencl(const char* name) {
  void* library = ::dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function>(::dlsym(library, name));
}

cl::Event make_gate(const Device& device) {
  cl_int rc = CL_SUCCESS;
  const cl_event event =
      opencl<decltype(&::clCreateUserEvent)>("clCreateUserEvent")(device.context()(), &rc);
  EXPECT_EQ(rc, CL_SUCCESS);
  return cl::Event(event);
}

void set_gate(const cl::Event& gate, cl_int status) {
  EXPECT_EQ(opencl<decltype(&::clSetUserEventStatus)>("clSetUserEventStatus")(gate(), status),
            CL_SUCCESS);
}

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

class EagerTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const FoundDevice& found : enumerate_devices()) {
      // A simulator would take minutes for what these tests enqueue.
      if (found.info.type == "simulator" || device_ != nullptr) continue;
      device_ = std::make_unique<Device>(found, "", Logger());
    }
    if (device_ == nullptr) GTEST_SKIP() << "no OpenCL device but simulators";
    queue_ = Queue::create(*device_);
    eager_ = std::make_unique<Eager>(provider_, queue_);
  }

  Tensor scale(const Tensor& x, double factor, double offset) {
    return eager_->run(scale_, {x}, {x.desc()}, {{"factor", factor}, {"offset", offset}})[0];
  }

  ScaleProvider provider_;
  std::unique_ptr<Device> device_;
  std::shared_ptr<Queue> queue_;
  std::unique_ptr<Eager> eager_;
  const OpRow& scale_ = find_op("scale");
};

TEST_F(EagerTest, PreparesEachQuestionOnce) {
  const Tensor x = Tensor::from_floats(queue_, {3}, {1, 2, 3});
  const Tensor wide = Tensor::from_floats(queue_, {1, 3}, {4, 5, 6});
  for (int repeat = 0; repeat < 3; ++repeat) {
    EXPECT_EQ(scale(x, 2, 1).to_floats(), (std::vector<float>{3, 5, 7}));
    EXPECT_EQ(scale(x, 2, -1).to_floats(), (std::vector<float>{1, 3, 5}));
    EXPECT_EQ(scale(x, 1, 2).to_floats(), (std::vector<float>{3, 4, 5}));
    EXPECT_EQ(scale(wide, 2, 1).to_floats(), (std::vector<float>{9, 11, 13}));
  }
  EXPECT_EQ(provider_.num_questions, 4);
}

TEST_F(EagerTest, ReadingWaitsForThatValueOnly) {
  const Tensor x = Tensor::from_floats(queue_, {1}, {1});
  const Tensor y = scale(x, 1, 1);
  const cl::Event gate = make_gate(*device_);
  const std::vector<cl::Event> gates = {gate};
  cl::Event gated;
  queue_->cl().enqueueMarkerWithWaitList(&gates, &gated);
  const Tensor z = scale(y, 1, 1);  // cannot run before the gate opens
  y.wait_to_read();
  EXPECT_EQ(y.item(), 2);
  EXPECT_EQ(x.item(), 1);
  EXPECT_EQ(Tensor(y, {DType::kF32, {1, 1}}).item(), 2);  // a view knows its writer, too
  EXPECT_NE(gated.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>(), CL_COMPLETE);
  set_gate(gate, CL_COMPLETE);
  EXPECT_EQ(z.item(), 3);
}

TEST_F(EagerTest, MemoryWithUnknownWriterIsReadInOrder) {
  const Tensor x(queue_, {DType::kF32, {256}});
  const float seven = 7;
  queue_->cl().enqueueFillBuffer(x.buffer(), seven, 0, 1024);
  EXPECT_EQ(x.to_floats(), std::vector<float>(256, 7));
}

TEST_F(EagerTest, AnErrorIsThrownByEveryLaterWait) {
  const Tensor x = Tensor::from_floats(queue_, {1}, {1});
  Tensor y = scale(x, 1, 1);
  const cl::Event failed = make_gate(*device_);
  set_gate(failed, CL_OUT_OF_RESOURCES);
  y.set_ready(failed);
  const auto code_of = [](auto&& wait) {
    try {
      wait();
    } catch (const Error& e) {
      return e.code();
    }
    return ErrorCode::kInternal;
  };
  EXPECT_EQ(code_of([&] { y.wait_to_read(); }), ErrorCode::kDevice);
  EXPECT_EQ(code_of([&] { y.item(); }), ErrorCode::kDevice);
  EXPECT_EQ(code_of([&] { x.item(); }), ErrorCode::kDevice);
  EXPECT_EQ(code_of([&] { queue_->finish(); }), ErrorCode::kDevice);
  EXPECT_EQ(code_of([&] { wait_all({queue_}); }), ErrorCode::kDevice);
}

TEST_F(EagerTest, RunningAheadKeepsMemoryFlat) {
  const auto increments = [this](int count) {
    Tensor x = Tensor::from_floats(queue_, {1024}, std::vector<float>(1024, 0));
    for (int i = 0; i < count; ++i) x = scale(x, 1, 1);
    return x.to_floats();
  };
  increments(20'000);  // the driver's own pools are filled
  const size_t pool = queue_->pool_bytes();
  const int64_t resident = resident_bytes();
  EXPECT_EQ(increments(200'000), std::vector<float>(1024, 200'000));
  EXPECT_EQ(queue_->pool_bytes(), pool);
  EXPECT_LE(pool, 4u * 4096);
  EXPECT_LT(resident_bytes() - resident, int64_t{16} << 20);
}

TEST_F(EagerTest, SharesOfADeviceWorkOnTheirOwn) {
  const FoundDevice whole{device_->info(), device_->cl_device()};
  const int units = static_cast<int>(whole.info.compute_units);
  EXPECT_THROW(divide_device(whole, units + 1), Error);
  if (units % 2 != 0) GTEST_SKIP() << "an odd number of compute units";
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<Tensor> results;
  std::vector<std::shared_ptr<Queue>> queues;
  for (const FoundDevice& part : divide_device(whole, 2)) {
    EXPECT_EQ(part.info.compute_units, units / 2);
    devices.push_back(std::make_unique<Device>(part, "", Logger()));
    queues.push_back(Queue::create(*devices.back()));
    Eager eager(provider_, queues.back());
    const Tensor x = Tensor::from_floats(queues.back(), {2}, {1, 2});
    results.push_back(eager.run(scale_, {x}, {x.desc()}, {{"factor", 3.0}, {"offset", 0.0}})[0]);
  }
  wait_all(queues);
  for (const Tensor& result : results) EXPECT_EQ(result.to_floats(), (std::vector<float>{3, 6}));
  EXPECT_NE(devices[0]->info().selector, devices[1]->info().selector);
}

}  // namespace
}  // namespace netcl
