// One rank of a transport test: plugin, group, and calls that throw netcl::Error on a bad status.
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

#include "plugins/transport/host/host_transport.h"
#include "tests/plugins/transport/fake_host.h"

namespace netcl::testing {

// A status of the transport as an exception.
struct Status : std::exception {
  Status(netcl_rc c, std::string t) : code(c), text(std::move(t)) {}
  const char* what() const noexcept override { return text.c_str(); }
  netcl_rc code;
  std::string text;
};

// Status and text of what the rank's call throws.
inline Status status_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Status& s) {
    return s;
  }
  return {NETCL_OK, "no error"};
}

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

class Rank {
 public:
  // A test of late ranks shortens the collectives' patience only, not that of set-up.
  static constexpr uint64_t kSetUpNs = 60'000'000'000u;

  Rank(TestDevice& device, std::shared_ptr<Segment> segment, uint32_t rank,
       const host_transport::Options& options, uint64_t timeout_ms = 60'000)
      : Rank(
            device, std::move(segment), rank,
            [&](const netcl_host* host) {
              return std::make_unique<host_transport::HostTransport>(host, options);
            },
            timeout_ms) {}
  // Of any transport.
  Rank(TestDevice& device, std::shared_ptr<Segment> segment, uint32_t rank,
       const MakeTransport& make, uint64_t timeout_ms)
      : rank_(rank),
        n_ranks_(segment->n_ranks()),
        device_(device),
        host_(make_fake_host()),
        boot_(std::move(segment), rank, kSetUpNs),
        plugin_(make(&host_)) {
    const auto* table = plugin_->query(NETCL_TRANSPORT_INTERFACE);
    api_ = static_cast<const netcl_transport_api*>(table);
    std::vector<netcl_member> members(n_ranks_);
    for (uint32_t r = 0; r < n_ranks_; ++r) members[r] = {r, 0, 0, 0};
    netcl_group_spec spec{};
    spec.size = sizeof(spec);
    spec.rank = rank;
    spec.n_ranks = n_ranks_;
    spec.members = members.data();
    spec.device = device.handle();
    spec.boot = reinterpret_cast<netcl_boot*>(&boot_);
    spec.timeout_ns = timeout_ms * 1'000'000;
    call([&](netcl_call* c) { return api_->open(self(), c, &spec, &group_); });
    cl_int code = CL_SUCCESS;
    queue_ = clCreateCommandQueue(device.context, device.device, 0, &code);
    host_transport::check_cl(code, "clCreateCommandQueue");
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  ~Rank() {
    if (group_ != nullptr) api_->close(self(), group_);
    if (queue_ != nullptr) clReleaseCommandQueue(queue_);
  }

  uint32_t rank() const { return rank_; }
  uint32_t n_ranks() const { return n_ranks_; }
  cl_command_queue queue() const { return queue_; }
  host_transport::HostGroup& group() { return *static_cast<host_transport::HostGroup*>(group_); }
  const netcl_transport_api& api() const { return *api_; }
  netcl_plugin* self() {
    return reinterpret_cast<netcl_plugin*>(static_cast<plugin::Plugin*>(plugin_.get()));
  }

  netcl_bucket bucket(uint64_t bytes) {
    netcl_bucket b{};
    b.size = sizeof(b);
    call([&](netcl_call* c) { return api_->bucket_new(self(), c, group_, bytes, &b); });
    return b;
  }
  void free(netcl_bucket& b) { api_->bucket_free(self(), group_, &b); }

  uint64_t post(const netcl_coll& coll) {
    uint64_t ticket = 0;
    call([&](netcl_call* c) { return api_->post(self(), c, group_, &coll, &ticket); });
    return ticket;
  }
  void wait(uint64_t ticket) {
    call([&](netcl_call* c) { return api_->wait(self(), c, group_, ticket); });
  }
  void abort(const std::string& reason) {
    api_->abort(self(), group_, {reason.data(), reason.size()});
  }

  static netcl_coll all_reduce(const netcl_bucket& b, uint64_t offset_bytes, uint64_t count,
                               uint32_t dtype, uint32_t op, const char* name = "test") {
    netcl_coll c{};
    c.size = sizeof(c);
    c.kind = NETCL_ALL_REDUCE;
    c.dtype = dtype;
    c.redop = op;
    c.offset_bytes = offset_bytes;
    c.count = count;
    c.bucket = &b;
    c.name = {name, std::strlen(name)};
    return c;
  }
  static netcl_coll barrier(const char* name = "barrier") {
    netcl_coll c{};
    c.size = sizeof(c);
    c.kind = NETCL_BARRIER;
    c.name = {name, std::strlen(name)};
    return c;
  }

  // Starts writing `bytes` into `send` and returns the event after which they lie there.
  cl_event write(const netcl_bucket& b, uint64_t offset, const void* data, uint64_t bytes) {
    if (bytes == 0) return nullptr;
    cl_event event = nullptr;
    host_transport::check_cl(clEnqueueWriteBuffer(queue_, static_cast<cl_mem>(b.send), CL_FALSE,
                                                  offset, bytes, data, 0, nullptr, &event),
                             "clEnqueueWriteBuffer");
    host_transport::check_cl(clFlush(queue_), "clFlush");
    return event;
  }
  void read(const netcl_bucket& b, uint64_t offset, void* data, uint64_t bytes) {
    if (bytes == 0) return;
    host_transport::check_cl(clEnqueueReadBuffer(queue_, static_cast<cl_mem>(b.recv), CL_TRUE,
                                                 offset, bytes, data, 0, nullptr, nullptr),
                             "clEnqueueReadBuffer");
  }

 private:
  template <typename Body>
  void call(Body&& body) {
    netcl_call c;
    const netcl_rc rc = body(&c);
    if (rc != NETCL_OK) throw Status(rc, c.text);
  }

  uint32_t rank_, n_ranks_;
  TestDevice& device_;
  netcl_host host_;
  Bootstrap boot_;
  std::unique_ptr<plugin::Transport> plugin_;
  const netcl_transport_api* api_ = nullptr;
  void* group_ = nullptr;
  cl_command_queue queue_ = nullptr;
};

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
