// One rank of a transport test: plugin, set-up, group, and calls that throw a bad status.
#ifndef NETCL_TESTS_PLUGINS_TRANSPORT_RANK_H_
#define NETCL_TESTS_PLUGINS_TRANSPORT_RANK_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/verify/collective_case.h"
#include "core/verify/transport_rank.h"
#include "plugins/transport/host/host_transport.h"
#include "tests/plugins/transport/fake_host.h"

namespace netcl::testing {

using Status = TransportStatus;

// Options with one way to stage.
inline host_transport::Options staged(uint64_t chunk_bytes, bool zero_copy) {
  host_transport::Options o;
  o.chunk_bytes = chunk_bytes;
  o.way = zero_copy ? host_transport::Way::kZeroCopy : host_transport::Way::kRegistered;
  return o;
}

// A directory with the kernels that reduce side by side, as they are installed.
inline std::string reduce_kernels_dir() {
  namespace fs = std::filesystem;
  const fs::path dir = fs::path(::testing::TempDir()) / "reduce_kernels";
  fs::create_directories(dir);
  for (const char* file : {"kernels/generic/storage.cl", "kernels/p2p/reduce_ranks.cl"}) {
    const fs::path to = dir / fs::path(file).filename();
    fs::copy_file(file, to, fs::copy_options::overwrite_existing);
  }
  return dir.string();
}

using MakeTransport = std::function<std::unique_ptr<plugin::Transport>(const netcl_host*)>;

// What a Rank is made of, which must be there before the group opens.
struct RankParts {
  // A test of late ranks shortens the collectives' patience only, not that of set-up.
  static constexpr uint64_t kSetUpNs = 60'000'000'000u;

  RankParts(TestDevice& device, std::shared_ptr<Segment> segment, uint32_t rank,
            const MakeTransport& make, uint64_t timeout_ms)
      : host(make_fake_host()), boot(segment, rank, kSetUpNs), transport(make(&host)) {
    for (uint32_t r = 0; r < segment->n_ranks(); ++r) members.push_back({r, 0, 0, 0});
    spec.size = sizeof(spec);
    spec.rank = rank;
    spec.n_ranks = segment->n_ranks();
    spec.members = members.data();
    spec.device = device.handle();
    spec.boot = reinterpret_cast<netcl_boot*>(&boot);
    spec.timeout_ns = timeout_ms * 1'000'000;
    access = access_of(*transport, "test");
    cl_int code = CL_SUCCESS;
    queue = cl::CommandQueue(clCreateCommandQueue(device.context, device.device, 0, &code));
    host_transport::check_cl(code, "clCreateCommandQueue");
  }

  netcl_host host;
  Bootstrap boot;
  std::unique_ptr<plugin::Transport> transport;
  std::vector<netcl_member> members;
  netcl_group_spec spec{};
  TransportAccess access;
  cl::CommandQueue queue;
};

class Rank : private RankParts, public TransportRank {
 public:
  Rank(TestDevice& device, std::shared_ptr<Segment> segment, uint32_t rank,
       const host_transport::Options& options, uint64_t timeout_ms = 60'000)
      : Rank(
            device, std::move(segment), rank,
            [&](const netcl_host* table) {
              return std::make_unique<host_transport::HostTransport>(table, options);
            },
            timeout_ms) {}
  // Of any transport.
  Rank(TestDevice& device, std::shared_ptr<Segment> segment, uint32_t rank,
       const MakeTransport& make, uint64_t timeout_ms)
      : RankParts(device, std::move(segment), rank, make, timeout_ms),
        TransportRank(access, spec, RankParts::queue) {}

  host_transport::HostGroup& host_group() {
    return *static_cast<host_transport::HostGroup*>(group());
  }
};

// Runs the case on this rank, and fails the test where its result is wrong.
inline void run_case(Rank& rank, const netcl_bucket& bucket, const CollectiveCase& c,
                     ExpectedResults& expected) {
  EXPECT_EQ(check_collective(rank, bucket, c, expected), "");
}

// Runs `body(rank)` on a thread for each rank. The first exception is thrown again, after all
// ended.
inline void on_ranks_of(
    uint32_t n_ranks,
    const std::function<std::unique_ptr<Rank>(std::shared_ptr<Segment>, uint32_t)>& make,
    const std::function<void(Rank&)>& body) {
  const auto segment = Segment::create(n_ranks);
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> errors(n_ranks);
  for (uint32_t r = 0; r < n_ranks; ++r) {
    threads.emplace_back([&, r] {
      try {
        const std::unique_ptr<Rank> rank = make(segment, r);
        body(*rank);
      } catch (...) {
        errors[r] = std::current_exception();
        segment->abort("a rank of the test failed");
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::exception_ptr& e : errors) {
    if (e) std::rethrow_exception(e);
  }
}

inline void on_ranks(TestDevice& device, uint32_t n_ranks,
                     const std::function<host_transport::Options(uint32_t)>& options_of_rank,
                     uint64_t timeout_ms, const std::function<void(Rank&)>& body) {
  on_ranks_of(
      n_ranks,
      [&](std::shared_ptr<Segment> segment, uint32_t r) {
        return std::make_unique<Rank>(device, std::move(segment), r, options_of_rank(r),
                                      timeout_ms);
      },
      body);
}

inline void on_ranks(TestDevice& device, uint32_t n_ranks, const host_transport::Options& options,
                     uint64_t timeout_ms, const std::function<void(Rank&)>& body) {
  on_ranks(
      device, n_ranks, [&](uint32_t) { return options; }, timeout_ms, body);
}

}  // namespace netcl::testing

#endif  // NETCL_TESTS_PLUGINS_TRANSPORT_RANK_H_
