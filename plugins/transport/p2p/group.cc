#include "plugins/transport/p2p/group.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "plugins/transport/p2p/launch.h"

namespace netcl::p2p_transport {

using plugin::Failure;
using plugin::Host;

namespace {

using Clock = std::chrono::steady_clock;

// The ranks' clocks and addresses are one process's: what they exchange is a pointer.
struct Hello {
  std::shared_ptr<Team>* team;
};

std::vector<uint64_t> parts_of(const netcl_coll& c, uint32_t n_ranks) {
  if (c.counts != nullptr) return {c.counts, c.counts + n_ranks};
  std::vector<uint64_t> out(n_ranks, c.count / n_ranks);
  for (uint64_t i = 0; i < c.count % n_ranks; ++i) ++out[i];
  return out;
}

bool reduces(uint32_t kind) { return kind == NETCL_ALL_REDUCE || kind == NETCL_REDUCE_SCATTER; }
bool has_root(uint32_t kind) {
  return kind == NETCL_BROADCAST || kind == NETCL_SCATTER || kind == NETCL_GATHER;
}

}  // namespace

P2pGroup::P2pGroup(const Host& host, const netcl_group_spec& spec, const std::string& kernels)
    : rank_(spec.rank), n_ranks_(spec.n_ranks), timeout_ns_(spec.timeout_ns), boot_(spec.boot) {
  void *platform = nullptr, *device = nullptr, *context = nullptr;
  plugin::check(host.table()->device_cl(host.call(), spec.device, &platform, &device, &context),
                "device_cl");
  device_ = std::make_unique<RankDevice>(static_cast<cl_context>(context),
                                         static_cast<cl_device_id>(device), kernels, n_ranks_);
  meet(host);
}

void P2pGroup::meet(const Host& host) {
  std::shared_ptr<Team> own;
  if (rank_ == 0) own = std::make_shared<Team>(n_ranks_);
  const Hello mine{&own};
  std::vector<Hello> all(n_ranks_);
  plugin::check(host.table()->boot_exchange(host.call(), boot_, &mine, sizeof(mine), all.data()),
                "boot_exchange");
  team_ = *all[0].team;
  team_->set_device(rank_, device_.get());
  // All have copied the pointer and given their device.
  plugin::check(host.table()->boot_exchange(host.call(), boot_, &mine, sizeof(mine), all.data()),
                "boot_exchange");
}

P2pGroup::~P2pGroup() {
  team_->leave(rank_);
  clFinish(device_->queue());
  for (const auto& bucket : buckets_) release(*bucket);
}

void P2pGroup::release(Bucket& bucket) {
  for (cl_mem memory : {bucket.send, bucket.recv, bucket.part}) {
    if (memory != nullptr) clReleaseMemObject(memory);
  }
  bucket = {};
}

void P2pGroup::bucket_new(const Host&, uint64_t bytes, netcl_bucket* out) {
  auto bucket = std::make_unique<Bucket>();
  bucket->bytes = bytes;
  const uint64_t size = std::max<uint64_t>(bytes, 8);
  cl_int code = CL_SUCCESS;
  bucket->send = clCreateBuffer(device_->context(), CL_MEM_READ_WRITE, size, nullptr, &code);
  check_cl(code, "clCreateBuffer of a bucket");
  bucket->recv = clCreateBuffer(device_->context(), CL_MEM_READ_WRITE, size, nullptr, &code);
  if (code != CL_SUCCESS) release(*bucket);
  check_cl(code, "clCreateBuffer of a bucket's result");
  out->handle = bucket.get();
  out->send = bucket->send;
  out->recv = bucket->recv;
  out->bytes = bytes;
  buckets_.push_back(std::move(bucket));
}

void P2pGroup::bucket_free(netcl_bucket* bucket) noexcept {
  const auto it =
      std::find_if(buckets_.begin(), buckets_.end(),
                   [&](const std::unique_ptr<Bucket>& b) { return b.get() == bucket->handle; });
  if (it == buckets_.end()) return;
  // Commands of other ranks that still read it hold the memory: OpenCL frees it after them.
  clFinish(device_->queue());
  release(**it);
  buckets_.erase(it);
  bucket->handle = bucket->send = bucket->recv = nullptr;
}

Posting P2pGroup::checked(const netcl_coll& c) const {
  const auto refuse = [&](const std::string& why) {
    throw Failure(NETCL_E_ARG, "p2p transport: collective \"" + std::string(plugin::view(c.name)) +
                                   "\": " + why);
  };
  Posting out;
  out.kind = c.kind;
  out.name = std::string(plugin::view(c.name));
  out.ready = static_cast<cl_event>(c.ready);
  if (c.kind == NETCL_BARRIER) return out;
  if (c.kind == 0 || c.kind > NETCL_GATHER)
    refuse("kind " + std::to_string(c.kind) + " is not known");
  const size_t size = transport::reduced_element_bytes(c.dtype);
  if (size == 0) refuse("dtype " + std::to_string(c.dtype) + " cannot be sent");
  if (reduces(c.kind) && (c.redop < NETCL_SUM || c.redop > NETCL_MEAN)) {
    refuse("reduction " + std::to_string(c.redop) + " is not known");
  }
  if (has_root(c.kind) && c.root >= n_ranks_) {
    refuse("root " + std::to_string(c.root) + " of " + std::to_string(n_ranks_) + " ranks");
  }
  if (c.bucket == nullptr || c.bucket->handle == nullptr) refuse("has no bucket");
  out.bucket = static_cast<Bucket*>(c.bucket->handle);
  const uint64_t bytes = out.bucket->bytes;
  if (c.offset_bytes % size != 0 || c.offset_bytes > bytes ||
      c.count > (bytes - c.offset_bytes) / size) {
    refuse(std::to_string(c.count) + " elements of " + std::to_string(size) + " bytes at byte " +
           std::to_string(c.offset_bytes) + " do not lie in a bucket of " + std::to_string(bytes));
  }
  out.dtype = c.dtype;
  out.redop = reduces(c.kind) ? c.redop : 0;
  out.root = has_root(c.kind) ? c.root : 0;
  out.offset_bytes = c.offset_bytes;
  out.count = c.count;
  out.weight = c.redop == NETCL_MEAN ? c.weight : 1;
  out.counts = parts_of(c, n_ranks_);
  if (std::accumulate(out.counts.begin(), out.counts.end(), uint64_t{0}) != c.count) {
    refuse("the ranks' counts do not add up to " + std::to_string(c.count));
  }
  const bool floats = c.dtype == NETCL_F32 || c.dtype == NETCL_F16 || c.dtype == NETCL_BF16;
  if (reduces(c.kind) && c.redop == NETCL_MEAN && !floats && c.weight != 1) {
    refuse("a weighted mean of integers; use weight 1, or floats");
  }
  return out;
}

uint64_t P2pGroup::post(const Host& host, const netcl_coll& c) {
  Posting posting = checked(c);
  plugin::check(host.table()->boot_status(host.call(), boot_), "boot_status");
  team_->post(rank_, posted_ + 1, std::move(posting));
  return ++posted_;
}

void P2pGroup::wait(const Host& host, uint64_t ticket) {
  if (ticket == 0 || ticket > posted_) {
    throw Failure(NETCL_E_ARG, "p2p transport: no collective has ticket " + std::to_string(ticket));
  }
  const Clock::time_point begin = Clock::now();
  // Collectives complete in order, and each must be waited for once, to be dropped.
  while (waited_ < ticket) {
    while (!team_->wait_launched(waited_ + 1)) {
      const netcl_rc rc = host.table()->boot_status(host.call(), boot_);
      if (rc != NETCL_OK) {
        team_->fail({rc, "the group was stopped by its host"});
        throw plugin::Reported(rc, "boot_status");
      }
      if (Clock::now() - begin < std::chrono::nanoseconds(timeout_ns_)) continue;
      const Problem late{NETCL_E_TIMEOUT, "p2p transport: rank " + std::to_string(rank_) +
                                              " waited " +
                                              std::to_string(timeout_ns_ / 1'000'000u) +
                                              " ms for rank " + team_->missing(waited_ + 1)};
      team_->fail(late);
      throw Failure(late.code, late.text);
    }
    team_->wait_done(++waited_);
  }
}

void P2pGroup::abort(std::string_view reason) noexcept {
  team_->fail({NETCL_E_CANCELLED, "aborted: " + std::string(reason)});
}

}  // namespace netcl::p2p_transport
