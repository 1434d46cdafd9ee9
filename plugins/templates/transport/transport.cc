// The transport @NAME@: adds gradients up over the ranks of a group. A collective goes in chunks:
// every rank gives its own to all others (interconnect.cc), adds up what it got, in rank order, and
// copies the result to its device.
//
// Step 1: make interconnect.cc reach your peers; nothing here knows how.
// Step 2: change accept(), which says who can be served, and the flags given to Transport().
// Step 3: start collectives in post(), on a thread of your own: here they run in wait().
// Step 4: `make check` sums over two workers and trains with them.
#include <algorithm>
#include <cstring>
#include <deque>

#include "interconnect.h"
#include "netcl_transport.hpp"
#include "opencl.h"
#include "reduce.h"

namespace {

using netcl::plugin::check;
using netcl::plugin::Decline;
using netcl::plugin::Failure;
using netcl::plugin::Host;

// What a rank is about to do. All must be about to do the same, or nothing is added.
struct Announcement {
  uint32_t kind, dtype, redop, root;
  uint64_t offset_bytes, count;
  double weight;
  char name[64];
};

struct Posted {
  Announcement what{};
  std::vector<uint64_t> parts;  // elements of every rank's part
  netcl_bucket bucket{};
  void* ready = nullptr;  // a retained cl_event
};

bool reduces(uint32_t kind) { return kind == NETCL_ALL_REDUCE || kind == NETCL_REDUCE_SCATTER; }
bool from_root(uint32_t kind) { return kind == NETCL_BROADCAST || kind == NETCL_SCATTER; }

// One rank's end of a group. netcl makes one call at a time, but for abort().
class Group : public netcl::plugin::TransportGroup {
 public:
  Group(const Host& host, const netcl_group_spec& spec)
      : cl_(open_opencl()), links_(host, spec), rank_(spec.rank), n_ranks_(spec.n_ranks) {
    result_.resize(Interconnect::kMaxBytes);
    void *platform = nullptr, *device = nullptr;
    check(host.table()->device_cl(host.call(), spec.device, &platform, &device, &context_),
          "device_cl");
    int32_t code = 0;
    queue_ = cl_.create_queue(context_, device, 0, &code);  // our own: the order is ours, too
    check_opencl(code, "clCreateCommandQueue");
  }
  ~Group() override {
    for (const Posted& p : posted_) {
      if (p.ready != nullptr) cl_.release_event(p.ready);
    }
    cl_.release_queue(queue_);
  }

  // Memory that kernels write to and read from. A transport that shares memory with its peers
  // allocates it here and tells them of it; ours only needs a buffer, for both directions.
  void bucket_new(const Host&, uint64_t bytes, netcl_bucket* out) override {
    int32_t code = 0;
    constexpr uint64_t kReadWrite = 1;  // CL_MEM_READ_WRITE
    out->send =
        cl_.create_buffer(context_, kReadWrite, std::max<uint64_t>(bytes, 8), nullptr, &code);
    check_opencl(code, "clCreateBuffer");
    out->handle = out->recv = out->send;
    out->bytes = bytes;
  }
  void bucket_free(netcl_bucket* bucket) noexcept override {
    if (bucket->send != nullptr) cl_.release_buffer(bucket->send);
    bucket->handle = bucket->send = bucket->recv = nullptr;
  }

  uint64_t post(const Host&, const netcl_coll& c) override {
    if (failed_) throw Failure(NETCL_E_STATE, "a collective of the group has failed before");
    posted_.push_back(checked(c));
    return ++n_posted_;
  }

  // Collectives run in the order posted.
  void wait(const Host& host, uint64_t ticket) override {
    if (ticket == 0 || ticket > n_posted_)
      throw Failure(NETCL_E_ARG, "no collective has ticket " + std::to_string(ticket));
    if (failed_) throw Failure(NETCL_E_STATE, "a collective of the group has failed before");
    while (n_done_ < ticket) {
      failed_ = true;  // unless run() returns: the ranks do not stand at the same place any more
      run(host, posted_.front());
      failed_ = false;
      if (posted_.front().ready != nullptr) cl_.release_event(posted_.front().ready);
      posted_.pop_front();
      ++n_done_;
    }
  }

  void abort(std::string_view reason) noexcept override { links_.abort(reason); }

 private:
  // Throws for what cannot be done, so that a mistake is seen at once and not in wait().
  Posted checked(const netcl_coll& c) const {
    Posted out;
    const auto refuse = [&](const std::string& why) {
      throw Failure(NETCL_E_ARG, "collective \"" + std::string(out.what.name) + "\": " + why);
    };
    const std::string_view name = netcl::plugin::view(c.name).substr(0, sizeof(out.what.name) - 1);
    std::copy(name.begin(), name.end(), out.what.name);
    out.what.kind = c.kind;
    if (c.kind < NETCL_ALL_REDUCE || c.kind > NETCL_GATHER)
      refuse("its kind " + std::to_string(c.kind) + " is not known");
    if (c.kind == NETCL_BARRIER) return out;
    const uint64_t size = element_bytes(c.dtype);
    if (size == 0) refuse("its type " + std::to_string(c.dtype) + " is not known");
    if (reduces(c.kind) && !can_reduce(c.dtype, c.redop))
      refuse("its type cannot be reduced by " + std::to_string(c.redop));
    if (!reduces(c.kind) && c.root >= n_ranks_)
      refuse("there is no rank " + std::to_string(c.root));
    if (c.bucket == nullptr || c.bucket->handle == nullptr) refuse("it has no bucket");
    if (c.offset_bytes % size != 0 || c.offset_bytes > c.bucket->bytes ||
        c.count > (c.bucket->bytes - c.offset_bytes) / size)
      refuse("its range is not in the bucket");
    out.what.dtype = c.dtype;
    out.what.redop = reduces(c.kind) ? c.redop : 0;
    out.what.root = c.root;
    out.what.offset_bytes = c.offset_bytes;
    out.what.count = c.count;
    out.what.weight = c.redop == NETCL_MEAN ? c.weight : 1;
    out.bucket = *c.bucket;
    uint64_t sum = 0;
    for (uint32_t r = 0; r < n_ranks_; ++r) {
      const uint64_t even = c.count / n_ranks_ + (r < c.count % n_ranks_ ? 1 : 0);
      out.parts.push_back(c.counts != nullptr ? c.counts[r] : even);
      sum += out.parts.back();
    }
    if (sum != c.count) refuse("its parts do not add up");
    out.ready = c.ready;
    if (out.ready != nullptr) check_opencl(cl_.retain_event(out.ready), "clRetainEvent");
    return out;
  }

  void run(const Host& host, const Posted& p) {
    const std::string what = "collective \"" + std::string(p.what.name) + "\"";
    std::memcpy(links_.mine(), &p.what, sizeof(p.what));
    std::vector<double> weights;
    const std::vector<const char*> all = links_.exchange(host, sizeof(p.what), what);
    for (uint32_t r = 0; r < n_ranks_; ++r) {
      Announcement other;
      std::memcpy(&other, all[r], sizeof(other));
      compare(p.what, other, r);
      weights.push_back(other.weight);
    }
    if (p.ready != nullptr) check_opencl(cl_.wait(1, &p.ready), "the work before the collective");
    const uint64_t size = p.what.kind == NETCL_BARRIER ? 1 : element_bytes(p.what.dtype);
    const uint64_t step = Interconnect::kMaxBytes / size;
    for (uint64_t first = 0; first < p.what.count; first += step) {
      const uint64_t count = std::min(step, p.what.count - first);
      const uint64_t at = p.what.offset_bytes + first * size;
      check_opencl(
          cl_.read(queue_, p.bucket.send, 1, at, count * size, links_.mine(), 0, nullptr, nullptr),
          "clEnqueueReadBuffer");
      combine(p, first, count, size, links_.exchange(host, count * size, what), weights);
      check_opencl(cl_.write(queue_, p.bucket.recv, 1, at, count * size, result_.data(), 0, nullptr,
                             nullptr),
                   "clEnqueueWriteBuffer");
    }
  }

  // Makes the result of elements [first, first + count) of all ranks' own.
  void combine(const Posted& p, uint64_t first, uint64_t count, uint64_t size,
               const std::vector<const char*>& all, const std::vector<double>& weights) {
    if (reduces(p.what.kind)) {
      reduce(p.what.dtype, p.what.redop, {all.begin(), all.end()}, weights, result_.data(), count);
    } else if (from_root(p.what.kind)) {
      std::memcpy(result_.data(), all[p.what.root], count * size);
    } else {  // gather: of every rank its part, as far as it is in this chunk
      uint64_t begin = 0;
      for (uint32_t r = 0; r < n_ranks_; ++r) {
        const uint64_t from = std::clamp(begin, first, first + count);
        begin += p.parts[r];
        const uint64_t to = std::clamp(begin, first, first + count);
        std::memcpy(result_.data() + (from - first) * size, all[r] + (from - first) * size,
                    (to - from) * size);
      }
    }
  }

  void compare(const Announcement& mine, const Announcement& other, uint32_t rank) const {
    if (mine.kind == other.kind && mine.dtype == other.dtype && mine.redop == other.redop &&
        mine.root == other.root && mine.offset_bytes == other.offset_bytes &&
        mine.count == other.count && std::strcmp(mine.name, other.name) == 0)
      return;
    const auto words = [](const Announcement& a) {
      return "\"" + std::string(a.name) + "\" (kind " + std::to_string(a.kind) + ", type " +
             std::to_string(a.dtype) + ", reduction " + std::to_string(a.redop) + ", " +
             std::to_string(a.count) + " elements)";
    };
    throw Failure(NETCL_E_STATE, "rank " + std::to_string(rank_) + " is at " + words(mine) +
                                     ", rank " + std::to_string(rank) + " at " + words(other));
  }

  const OpenCl cl_;
  Interconnect links_;
  const uint32_t rank_, n_ranks_;
  void *context_ = nullptr, *queue_ = nullptr;
  std::vector<char> result_;
  std::deque<Posted> posted_;  // those that have not run
  uint64_t n_posted_ = 0, n_done_ = 0;
  bool failed_ = false;
};

class Plugin : public netcl::plugin::Transport {
 public:
  // It serves ranks of different processes, but not of different machines.
  explicit Plugin(const netcl_host* host) : Transport(host, NETCL_TC_CROSS_PROCESS) {}
  // Both are checked against plugin.json.
  std::string_view id() const override { return "@NAME@"; }
  std::string_view version() const override { return "0.1.0"; }

  void accept(const Host&, const netcl_group_spec& spec) override {
    for (uint32_t r = 1; r < spec.n_ranks; ++r) {
      if (spec.members[r].host != spec.members[0].host)
        throw Decline("ranks 0 and " + std::to_string(r) + " are on different machines");
    }
  }
  std::unique_ptr<netcl::plugin::TransportGroup> open(const Host& host,
                                                      const netcl_group_spec& spec) override {
    accept(host, spec);
    return std::make_unique<Group>(host, spec);
  }
};

}  // namespace

// The one exported function.
NETCL_PLUGIN(Plugin)
