// The transport @NAME@: ranks of one machine meet in shared memory. Every rank copies its part of
// a collective there, waits for the others, takes the result out of all parts and copies it to its
// device. Simple and right; the plugin `host` of netcl does the same faster.
//
// Step 1: change exchange() and meet() to what your interconnect does: they alone know that the
//         ranks share memory.
// Step 2: change accept(), which says who can be served, and the flags given to Transport().
// Step 3: start collectives in post(), on a thread of your own: here they run in wait().
// Step 4: `make check` sums over two workers and trains with them.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <mutex>

#include "netcl_transport.hpp"
#include "opencl.h"
#include "reduce.h"

namespace {

using netcl::plugin::check;
using netcl::plugin::Decline;
using netcl::plugin::Failure;
using netcl::plugin::Host;

constexpr uint64_t kChunkBytes = 1 << 20;  // of a rank in the shared memory

// What a rank is about to do. All must be about to do the same, or nothing is added.
struct Announcement {
  uint32_t kind, dtype, redop, root;
  uint64_t offset_bytes, count;
  double weight;
  char name[64];
};

// One rank's place in the shared memory, which is zero at first.
struct alignas(64) Place {
  std::atomic<uint64_t> stage;  // how many meetings the rank has come to
  Announcement announced;
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
      : cl_(open_opencl()),
        rank_(spec.rank),
        n_ranks_(spec.n_ranks),
        timeout_(spec.timeout_ns),
        boot_(spec.boot) {
    // Every rank asks for the same memory; what is small could also go through boot_exchange().
    void* memory = nullptr;
    const uint64_t places = (n_ranks_ * sizeof(Place) + 4095) / 4096 * 4096;
    check(host.table()->boot_shared(host.call(), boot_, places + n_ranks_ * kChunkBytes, &memory),
          "boot_shared");
    places_ = static_cast<Place*>(memory);
    slots_ = static_cast<char*>(memory) + places;
    result_.resize(kChunkBytes);
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

  void abort(std::string_view reason) noexcept override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!aborted_) reason_ = reason;
    aborted_ = true;
  }

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
    places_[rank_].announced = p.what;
    meet(host, p);
    for (uint32_t r = 0; r < n_ranks_; ++r) compare(p.what, places_[r].announced, r);
    if (p.ready != nullptr) check_opencl(cl_.wait(1, &p.ready), "the work before the collective");
    const uint64_t size = p.what.kind == NETCL_BARRIER ? 1 : element_bytes(p.what.dtype);
    const uint64_t step = kChunkBytes / size;
    for (uint64_t first = 0; first < p.what.count; first += step)
      exchange(host, p, first, std::min(step, p.what.count - first), size);
    meet(host, p);  // all have read what was announced
  }

  // Elements [first, first + count) of the collective.
  void exchange(const Host& host, const Posted& p, uint64_t first, uint64_t count, uint64_t size) {
    const uint64_t at = p.what.offset_bytes + first * size;
    check_opencl(
        cl_.read(queue_, p.bucket.send, 1, at, count * size, slot(rank_), 0, nullptr, nullptr),
        "clEnqueueReadBuffer");
    meet(host, p);  // all parts are there
    if (reduces(p.what.kind)) {
      std::vector<const void*> in;
      std::vector<double> weights;
      for (uint32_t r = 0; r < n_ranks_; ++r) {
        in.push_back(slot(r));
        weights.push_back(places_[r].announced.weight);
      }
      reduce(p.what.dtype, p.what.redop, in, weights, result_.data(), count);
    } else if (from_root(p.what.kind)) {
      std::memcpy(result_.data(), slot(p.what.root), count * size);
    } else {  // gather: of every rank its part, as far as it is in this chunk
      uint64_t begin = 0;
      for (uint32_t r = 0; r < n_ranks_; ++r) {
        const uint64_t from = std::clamp(begin, first, first + count);
        begin += p.parts[r];
        const uint64_t to = std::clamp(begin, first, first + count);
        std::memcpy(result_.data() + (from - first) * size, slot(r) + (from - first) * size,
                    (to - from) * size);
      }
    }
    check_opencl(
        cl_.write(queue_, p.bucket.recv, 1, at, count * size, result_.data(), 0, nullptr, nullptr),
        "clEnqueueWriteBuffer");
    meet(host, p);  // nobody needs the parts any more
  }

  // Returns when every rank has come here as often as this one. A rank that has died or is late
  // ends the wait: no transport may wait for ever.
  void meet(const Host& host, const Posted& p) {
    const uint64_t stage = places_[rank_].stage.fetch_add(1) + 1;
    const auto begin = std::chrono::steady_clock::now();
    for (uint32_t r = 0; r < n_ranks_; ++r) {
      for (uint32_t looked = 0; places_[r].stage.load() < stage; ++looked) {
        sched_yield();
        if (looked % 64 != 0) continue;
        check(host.table()->boot_status(host.call(), boot_), "boot_status");
        throw_if_aborted();
        if (std::chrono::steady_clock::now() - begin > std::chrono::nanoseconds(timeout_))
          throw Failure(NETCL_E_TIMEOUT, "collective \"" + std::string(p.what.name) + "\": rank " +
                                             std::to_string(rank_) + " waited in vain for rank " +
                                             std::to_string(r));
      }
    }
    throw_if_aborted();
  }

  void throw_if_aborted() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (aborted_) throw Failure(NETCL_E_CANCELLED, "aborted: " + reason_);
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

  char* slot(uint32_t rank) const { return slots_ + rank * kChunkBytes; }

  const OpenCl cl_;
  const uint32_t rank_, n_ranks_;
  const uint64_t timeout_;
  netcl_boot* const boot_;
  void *context_ = nullptr, *queue_ = nullptr;
  Place* places_ = nullptr;  // one a rank, in memory that all see; netcl frees it
  char* slots_ = nullptr;
  std::vector<char> result_;
  std::deque<Posted> posted_;  // those that have not run
  uint64_t n_posted_ = 0, n_done_ = 0;
  bool failed_ = false;
  std::mutex mutex_;  // abort() comes from any thread
  bool aborted_ = false;
  std::string reason_;
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
