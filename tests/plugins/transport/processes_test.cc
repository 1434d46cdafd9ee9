// The communicator over the host transport, with real worker processes (this binary again) and with
// threads: sums, a killed worker, and the areas of errors.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "core/base/environment.h"
#include "core/collective/communicator.h"
#include "core/distributed/process.h"
#include "plugins/transport/host/host_transport.h"
#include "tests/plugins/transport/fake_host.h"

namespace netcl::testing {
namespace {

constexpr int kSegmentFd = 5, kStatusFd = 6;
constexpr uint64_t kCount = 100'003, kPartsCount = 30'000;

// Shows the group that it opened last.
struct Watched : host_transport::HostTransport {
  using HostTransport::HostTransport;
  std::unique_ptr<plugin::TransportGroup> open(const plugin::Host& host,
                                               const netcl_group_spec& spec) override {
    auto group = HostTransport::open(host, spec);
    last_group = static_cast<host_transport::HostGroup*>(group.get());
    return group;
  }
  host_transport::HostGroup* last_group = nullptr;
};

// What a worker needs to have a Communicator.
struct Worker {
  Worker(TestDevice& opened, std::shared_ptr<Segment> segment, uint32_t rank, uint64_t timeout_ms)
      : device(opened),
        host(make_fake_host()),
        boot(segment, rank, timeout_ms * 1'000'000),
        plugin(&host, {}) {
    for (uint32_t r = 0; r < segment->n_ranks(); ++r) members.push_back({r, 0, r, r});
    spec.size = sizeof(spec);
    spec.rank = rank;
    spec.n_ranks = segment->n_ranks();
    spec.members = members.data();
    spec.device = device.handle();
    spec.boot = reinterpret_cast<netcl_boot*>(&boot);
    spec.timeout_ns = timeout_ms * 1'000'000;
    access = access_of(plugin, "host");
    cl_int code = CL_SUCCESS;
    queue = clCreateCommandQueue(device.context, device.device, 0, &code);
    host_transport::check_cl(code, "clCreateCommandQueue");
    communicator = std::make_unique<Communicator>(access, spec);
  }
  ~Worker() {
    communicator.reset();
    clReleaseCommandQueue(queue);
  }
  // Sum over ranks of base + rank + i, checked.
  void sum(const netcl_bucket& bucket, int32_t base, const std::string& name) {
    std::vector<int32_t> data(kCount);
    const auto rank = static_cast<int32_t>(communicator->rank());
    for (size_t i = 0; i < kCount; ++i) data[i] = base + rank + static_cast<int32_t>(i);
    cl_event ready = nullptr;
    clEnqueueWriteBuffer(queue, static_cast<cl_mem>(bucket.send), CL_FALSE, 0, kCount * 4,
                         data.data(), 0, nullptr, &ready);
    clFlush(queue);
    Ticket ticket;
    try {
      ticket =
          communicator->all_reduce({bucket, 0, kCount, DType::kI32, ready, name}, ReduceOp::kSum);
      clReleaseEvent(ready);
    } catch (...) {
      clFinish(queue);
      clReleaseEvent(ready);
      throw;
    }
    communicator->wait(ticket);
    clEnqueueReadBuffer(queue, static_cast<cl_mem>(bucket.recv), CL_TRUE, 0, kCount * 4,
                        data.data(), 0, nullptr, nullptr);
    const auto n = static_cast<int32_t>(communicator->n_ranks());
    for (size_t i = 0; i < kCount; ++i) {
      const int32_t want = n * (base + static_cast<int32_t>(i)) + n * (n - 1) / 2;
      NETCL_CHECK(data[i] == want, ErrorCode::kInternal, "element ", i, ": ", data[i], " not ",
                  want);
    }
  }

  uint64_t published() const { return plugin.last_group->published(); }
  // Values that begin at `base` in `send`, [lo, hi) of `recv` afterwards.
  std::vector<int32_t> run(const netcl_bucket& bucket, int32_t base, size_t lo, size_t hi,
                           const std::function<Ticket(const Span&)>& start) {
    std::vector<int32_t> data(kPartsCount);
    for (size_t i = 0; i < data.size(); ++i) data[i] = base + static_cast<int32_t>(i);
    clEnqueueWriteBuffer(queue, static_cast<cl_mem>(bucket.send), CL_TRUE, 0, kPartsCount * 4,
                         data.data(), 0, nullptr, nullptr);
    communicator->wait(start({bucket, 0, kPartsCount, DType::kI32, nullptr, "parts"}));
    if (hi > lo) {
      clEnqueueReadBuffer(queue, static_cast<cl_mem>(bucket.recv), CL_TRUE, lo * 4, (hi - lo) * 4,
                          data.data() + lo, 0, nullptr, nullptr);
    }
    return data;
  }
  // Every collective with parts of 0, 2/3 and 1/3, checked.
  void parts(const netcl_bucket& bucket) {
    Communicator& c = *communicator;
    const std::vector<uint64_t> counts = {0, kPartsCount / 3 * 2, kPartsCount / 3};
    const int32_t rank = static_cast<int32_t>(c.rank());
    const int32_t base = 1000 * (rank + 1);
    const size_t all = kPartsCount, lo = rank < 2 ? 0 : counts[1], hi = lo + counts[c.rank()];
    const auto expect = [&](const char* what, const std::vector<int32_t>& got, size_t from,
                            size_t to, const std::function<int64_t(size_t)>& want) {
      for (size_t i = from; i < to; ++i) {
        NETCL_CHECK(got[i] == want(i), ErrorCode::kInternal, what, ", element ", i, ": ", got[i],
                    " not ", want(i));
      }
    };
    const auto own = [&](size_t i) {
      return static_cast<int64_t>(i < counts[1] ? 2000 : 3000) + static_cast<int64_t>(i);
    };
    const auto of = [](int64_t b) { return [b](size_t i) { return b + static_cast<int64_t>(i); }; };
    expect("reduce_scatter",
           run(bucket, base, lo, hi,
               [&](const Span& s) { return c.reduce_scatter(s, ReduceOp::kSum, counts); }),
           lo, hi, [](size_t i) { return 6000 + 3 * static_cast<int64_t>(i); });
    expect("all_gather",
           run(bucket, base, 0, all, [&](const Span& s) { return c.all_gather(s, counts); }), 0,
           all, own);
    expect("broadcast", run(bucket, base, 0, all, [&](const Span& s) { return c.broadcast(s, 1); }),
           0, all, of(2000));
    expect("scatter",
           run(bucket, base, lo, hi, [&](const Span& s) { return c.scatter(s, 2, counts); }), lo,
           hi, of(3000));
    const size_t mine = rank == 1 ? all : 0;
    expect("gather",
           run(bucket, base, 0, mine, [&](const Span& s) { return c.gather(s, 1, counts); }), 0,
           mine, own);
    expect(
        "mean",
        run(bucket, base, 0, all, [&](const Span& s) { return c.all_reduce(s, ReduceOp::kMean); }),
        0, all, of(2000));
  }

  TestDevice& device;
  netcl_host host;
  Bootstrap boot;
  Watched plugin;
  std::vector<netcl_member> members;
  netcl_group_spec spec{};
  TransportAccess access;
  cl_command_queue queue = nullptr;
  std::unique_ptr<Communicator> communicator;
};

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A worker whose rank 1 dies after it has published and before it has reduced: nobody can reduce
// before rank 2 has come, which waits for the parent's word.
void run_dying_between(Worker& worker, Segment& segment, uint32_t rank) {
  const netcl_bucket& bucket = worker.communicator->new_bucket(1 << 20);
  if (rank == 2) {
    while (!segment.stop_requested()) sched_yield();
  }
  const Ticket ticket = worker.communicator->all_reduce(
      {bucket, 0, 1000, DType::kF32, nullptr, "half"}, ReduceOp::kSum);
  segment.set_step(rank, 1);
  if (rank == 1) {
    while (worker.published() == 0) sched_yield();
    raise(SIGKILL);
  }
  worker.communicator->wait(ticket);
}

// A worker process: reports one line.
int run_worker() {
  try {
    die_with_parent(static_cast<pid_t>(std::atol(variable("NETCL_TEST_PARENT"))));
    const auto segment = Segment::attach(UniqueFd(kSegmentFd));
    const auto rank = static_cast<uint32_t>(std::atol(variable("NETCL_TEST_RANK")));
    const std::string mode = variable("NETCL_TEST_MODE");
    const bool dies = std::string(variable("NETCL_TEST_DIES")) == std::to_string(rank);
    TestDevice device;
    Worker worker(device, segment, rank, 60'000);
    if (mode == "between") {
      run_dying_between(worker, *segment, rank);
      write_line(kStatusFd, "ok");
      return 0;
    }
    const netcl_bucket& bucket = worker.communicator->new_bucket(kCount * 4);
    for (int32_t round = 0; round < 10; ++round) {
      segment->set_step(rank, round);
      segment->record(rank, "step " + std::to_string(round));
      if (dies && round == 5) raise(SIGKILL);
      worker.sum(bucket, round, "gradients");
    }
    worker.parts(bucket);                                            // two waits
    worker.parts(worker.communicator->new_bucket(kPartsCount * 4));  // another bucket
    worker.communicator->barrier("end");
    write_line(kStatusFd, "ok");
    return 0;
  } catch (const std::exception& e) {
    write_line(kStatusFd, e.what());
    return 1;
  }
}

std::vector<ChildProcess> start(const Segment& segment, int dying_rank,
                                const std::string& mode = "sums") {
  std::vector<ChildProcess> children;
  for (uint32_t r = 0; r < segment.n_ranks(); ++r) {
    SpawnOptions o;
    o.argv = {"/proc/self/exe"};
    o.environment = environment::with_changes(
        {"NETCL_TEST_RANK=" + std::to_string(r), "NETCL_TEST_PARENT=" + std::to_string(getpid()),
         "NETCL_TEST_DIES=" + std::to_string(dying_rank), "NETCL_TEST_MODE=" + mode});
    o.descriptors = {{segment.fd(), kSegmentFd}};
    o.status_fd = kStatusFd;
    children.emplace_back(o);
  }
  return children;
}

std::string last_words(ChildProcess& child) {
  LineReader reader(child.status_fd());
  std::string all;
  while (!reader.at_end()) {
    wait_any({}, {child.status_fd()}, 60'000);
    for (const std::string& line : reader.read_lines()) all += line;
  }
  return all;
}

TEST(Processes, ThreeWorkersAgreeOnSums) {
  const auto segment = Segment::create(3);
  std::vector<ChildProcess> children = start(*segment, -1);
  for (ChildProcess& child : children) {
    EXPECT_EQ(last_words(child), "ok");
    EXPECT_EQ(child.wait(60'000)->describe(), "exit code 0");
  }
}

TEST(Processes, AKilledWorkerIsAnErrorWithItsNameInTheOthers) {
  const auto segment = Segment::create(3);
  std::vector<ChildProcess> children = start(*segment, 1);
  const Ready ready = wait_any({&children[0], &children[1], &children[2]}, {}, 60'000);
  ASSERT_EQ(ready.exited, std::vector<size_t>{1});
  const std::string how = children[1].wait(60'000)->describe();
  EXPECT_EQ(how, "killed by signal 9 (SIGKILL)");
  segment->abort("rank 1 was " + how);
  for (const size_t r : {0u, 2u}) {
    const std::string words = last_words(children[r]);
    EXPECT_NE(words.find("rank 1 was killed by signal 9 (SIGKILL)"), std::string::npos) << words;
    EXPECT_EQ(children[r].wait(60'000)->describe(), "exit code 1");
  }
  // The recorder outlives the worker.
  const auto events = segment->flight(1);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().text, "step 5");
  EXPECT_EQ(segment->state(1).step, 5);
}

TEST(Processes, AWorkerThatDiesBetweenPublishingAndReducingHangsNobody) {
  const auto segment = Segment::create(3);
  std::vector<ChildProcess> children = start(*segment, -1, "between");
  ASSERT_EQ(children[1].wait(60'000)->describe(), "killed by signal 9 (SIGKILL)");
  segment->request_stop();  // rank 2 may come
  while (segment->state(2).step != 1 && children[2].running()) sched_yield();
  segment->abort("rank 1 was killed by signal 9 (SIGKILL)");
  for (const size_t r : {0u, 2u}) {
    const std::string words = last_words(children[r]);
    EXPECT_NE(words.find("rank 1 was killed by signal 9 (SIGKILL)"), std::string::npos) << words;
    EXPECT_EQ(children[r].wait(60'000)->describe(), "exit code 1");
  }
}

ErrorCode code_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.code();
  }
  return ErrorCode::kUsage;
}

TEST(Communicator, ErrorsNameTheAreaThatMustAct) {
  const auto segment = Segment::create(2);
  TestDevice device;
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      Worker worker(device, segment, r, 60'000);
      Communicator& c = *worker.communicator;
      EXPECT_EQ(Communicator::accepts(worker.access, worker.spec), "");
      const netcl_bucket& b = c.new_bucket(kCount * 4);
      worker.sum(b, 3, "first");
      // Beyond the bucket: the caller broke the transport's contract.
      EXPECT_EQ(code_of([&] {
                  c.all_reduce({b, kCount, 1, DType::kF32, nullptr, "beyond"}, ReduceOp::kSum);
                }),
                ErrorCode::kPlugin);
      c.wait(c.broadcast({b, 5, 100, DType::kF32, nullptr, "parameters"}, 1));
      c.barrier("before the mismatch");
      EXPECT_EQ(code_of([&] {
                  c.wait(c.all_reduce({b, 0, 10 + r, DType::kF32, nullptr, "bad"}, ReduceOp::kSum));
                }),
                ErrorCode::kTraining);
    });
  }
  for (std::thread& t : threads) t.join();
}

TEST(Communicator, ATableWithoutFunctionsIsRefused) {
  netcl_transport_api api{};
  api.size = sizeof(api);
  TransportAccess access;
  access.api = &api;
  access.name = "empty";
  const netcl_group_spec spec{};
  EXPECT_EQ(code_of([&] { Communicator c(access, spec); }), ErrorCode::kPlugin);
}

}  // namespace
}  // namespace netcl::testing

int main(int argc, char** argv) {
  if (std::getenv("NETCL_TEST_RANK") != nullptr) return netcl::testing::run_worker();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
