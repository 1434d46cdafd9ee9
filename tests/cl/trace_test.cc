// A trace's clock against the host's, and its window.
#include "core/cl/trace.h"

#include <gtest/gtest.h>

#include "core/tensor/queue.h"
#include "tests/ops/device_fixture.h"

namespace netcl {
namespace testing {
namespace {

class TraceTest : public ::testing::Test {
 protected:
  // A fill between two looks at the host's clock.
  struct Look {
    uint64_t before, after;
  };
  Look fill(Queue& queue, const cl::Buffer& buffer, Trace& trace, const char* name) {
    cl::Event event;
    Look look{Trace::now_ns(), 0};
    queue.cl().enqueueFillBuffer(buffer, cl_int{1}, 0, kBytes, nullptr, &event);
    event.wait();
    look.after = Trace::now_ns();
    if (queue.recording() != nullptr) trace.command(name, "transfer", event, kBytes);
    return look;
  }
  static constexpr size_t kBytes = 1 << 20;
};

TEST_F(TraceTest, CommandsLieWhereTheHostSawThem) {
  Trace trace(2, 3);
  const auto queue = Queue::create(shared_device().device(), &trace);
  const auto buffer = queue->allocate(kBytes, "a buffer");
  std::vector<Look> looks;
  for (int64_t step = 1; step <= 7; ++step) {
    trace.begin_step(step, queue->cl());
    EXPECT_EQ(queue->recording() != nullptr, step >= 3 && step <= 5) << step;
    const Look look = fill(*queue, buffer->buffer(), trace, "fill");
    if (step >= 3 && step <= 5) looks.push_back(look);
  }
  trace.finish(queue->cl());
  const std::vector<TraceRecord> records = trace.take();
  ASSERT_EQ(records.size(), looks.size());
  // The brackets are as wide as a short command's way to the device and back; a machine that is
  // busy makes them wider, and says so.
  const uint64_t slack = 2 * trace.accuracy_ns() + 1;
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].step, static_cast<int64_t>(i) + 3);
    EXPECT_EQ(records[i].track, TraceTrack::kCompute);
    EXPECT_LT(records[i].begin_ns, records[i].end_ns);
    EXPECT_GE(records[i].begin_ns + slack, looks[i].before);
    EXPECT_LE(records[i].end_ns, looks[i].after + slack);
    ASSERT_EQ(records[i].numbers.size(), 1u);
    EXPECT_EQ(records[i].numbers[0].second, kBytes);
  }
}

TEST_F(TraceTest, SomethingBeginsWhereACommandEnds) {
  Trace trace(0, 1);
  const auto queue = Queue::create(shared_device().device(), &trace);
  const auto buffer = queue->allocate(kBytes, "a buffer");
  trace.begin_step(1, queue->cl());
  cl::Event event;
  queue->cl().enqueueFillBuffer(buffer->buffer(), cl_int{1}, 0, kBytes, nullptr, &event);
  event.wait();
  trace.command("fill", "transfer", event);
  TraceRecord record;
  record.name = "after";
  record.end_ns = Trace::now_ns() + 1'000'000'000;
  trace.span_after(record, event);
  trace.span_after(record, cl::Event());
  trace.finish(queue->cl());
  const std::vector<TraceRecord> records = trace.take();
  ASSERT_EQ(records.size(), 3u);
  // What needs no event is known first.
  EXPECT_EQ(records[0].begin_ns, 0u);
  EXPECT_EQ(records[1].name, "fill");
  EXPECT_EQ(records[2].name, "after");
  EXPECT_EQ(records[2].begin_ns, records[1].end_ns);
  EXPECT_EQ(records[2].end_ns, record.end_ns);
}

TEST_F(TraceTest, AQueueWithoutOneRecordsNothing) {
  const auto queue = Queue::create(shared_device().device());
  EXPECT_EQ(queue->trace(), nullptr);
  EXPECT_EQ(queue->recording(), nullptr);
  const TraceSpan span(queue->trace(), "nothing", "wait");
}

}  // namespace
}  // namespace testing
}  // namespace netcl
