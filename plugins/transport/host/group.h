// One rank's end of a group: takes collectives and works them off in a progress thread.
//
// A collective is cut into chunks. Per chunk each rank publishes its contribution in its slot;
// once all have published, each rank reduces its own share over all slots, in rank order, into the
// shared result and says so; once all have, the chunk may go to the device. The three stages of
// different chunks overlap: copies in both directions run on queues of their own, and where the
// device leaves processors free, several threads reduce. There is no lock and no barrier between
// ranks, only counters. Collectives that only move data publish at once, and the owner of a chunk
// puts it straight into the result. Two cards exchange instead: each copies the other's
// contribution from its slot and adds on the device, so that no processor touches the data, unless
// the device is busy with something else (NETCL_COLL_OVERLAPPED), whose kernels an addition would
// wait for; opening the group tries both and keeps what is faster. Of small messages every rank
// reads all and computes what it needs for itself, and the second wait falls away.
//
// Why slots, stages and results can be used again: a rank takes one collective after the other. A
// rank that publishes in collective k+1 has finished k, so nobody who has seen that of all ranks
// writes what somebody still reads; and it finished k only after all had placed their shares, hence
// read its slot (large) or, since stages alternate, after all had published k, hence finished k-1
// (small).
//
// Posting says that, once `ready` is complete, the rank no longer reads the same elements of
// `recv`: the ranks' results may be the same memory. `recv` must not be written.
//
// Errors: the first one is kept and thrown by every later wait of an unfinished collective; peers
// learn of it through the shared state. The host's own word (boot_status) is asked by wait().
// Threads: abort: any; the rest: [group].
#ifndef NETCL_PLUGINS_TRANSPORT_HOST_GROUP_H_
#define NETCL_PLUGINS_TRANSPORT_HOST_GROUP_H_

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/abi/netcl_transport.hpp"
#include "plugins/transport/host/bucket.h"
#include "plugins/transport/host/collective.h"
#include "plugins/transport/host/device_reducer.h"
#include "plugins/transport/host/reducers.h"
#include "plugins/transport/host/shared_state.h"

namespace netcl::host_transport {

struct Options {
  // 0: by device (the copies of a processor are cut finer). The ranks agree on the largest.
  uint64_t chunk_bytes = 0;
  std::optional<Way> way = {};  // none: the fastest
  // Threads that reduce beside the one that runs the collectives; none: by device and processors.
  std::optional<uint32_t> reducers = {};
  std::optional<bool> stream = {};  // whether results are written past the caches; none: by size
  // Whether devices reduce what they exchange; none: two cards try. Never with zero copy.
  std::optional<bool> on_devices = {};
  std::string kernels = {};  // directory of their files; empty: the plugin's own
};

// Chunks that are copied ahead of their reduction: enough to keep the device's engine busy, few
// enough to be still in the last cache when they are reduced.
constexpr uint64_t kCopiesAhead = 6;

class HostGroup : public plugin::TransportGroup {
 public:
  HostGroup(const plugin::Host& host, const netcl_group_spec& spec, const Options& options);
  ~HostGroup() override;

  void bucket_new(const plugin::Host& host, uint64_t bytes, netcl_bucket* out) override;
  void bucket_free(netcl_bucket* bucket) noexcept override;
  uint64_t post(const plugin::Host& host, const netcl_coll& collective) override;
  void wait(const plugin::Host& host, uint64_t ticket) override;
  void abort(std::string_view reason) noexcept override;

  Way way() const { return way_; }
  // Whether devices or processors reduce and why, for the log; "": there was no choice.
  const std::string& reduction() const { return reduction_; }
  // Chunks that this rank has published since the group was opened. Threads: any.
  uint64_t published() const { return shared_->rank(rank_)->published.load(); }

 private:
  struct Problem {
    netcl_rc code;
    std::string text;
  };
  class Run;  // the collective in progress; run.h

  void open_queues(const plugin::Host& host, const netcl_group_spec& spec);
  void release_queues() noexcept;
  // Chooses the way to stage and agrees with the other ranks on chunks and shares.
  void set_up(const plugin::Host& host, const netcl_group_spec& spec, const Options& options);
  // Decides whether the devices reduce, and says why. Collective.
  std::string choose_reduction(const plugin::Host& host, const Options& options);
  struct Trial {
    uint64_t device_ns, processors_ns;
    uint32_t equal;
  };
  Trial try_reductions(const plugin::Host& host);
  // Runs a collective on this thread, while there is no other yet.
  void run_here(const plugin::Host& host, const netcl_coll& c);
  bool reduces_on_devices(const Collective& collective) const {
    return collective.dtype == NETCL_F32 && (device_redops_ >> collective.redop & 1) != 0 &&
           (collective.flags & NETCL_COLL_OVERLAPPED) == 0;
  }
  uint64_t exchange_chunk_bytes(uint64_t bytes) const;
  uint32_t all_processors(const plugin::Host& host) const;
  uint32_t default_reducers(uint32_t processors) const;
  void progress_loop();
  // Runs the oldest posted collective. `host`: of a caller who waits for it, or nullptr.
  // `lock` is held on entry and on return. Throws Reported if the host has stopped the group.
  void run_oldest(std::unique_lock<std::mutex>& lock, const plugin::Host* host);
  // Whether wait() may run the oldest collective itself, which saves two switches of threads.
  bool can_run_here() const;
  // Throws Reported if the host has stopped the group.
  void ask_host(const plugin::Host& host);
  // Keeps the first problem, tells the peers of it, wakes the waiters.
  void give_up(const Problem& problem, bool tell_peers = true) noexcept;

  uint32_t rank_, n_ranks_;
  uint64_t timeout_ns_;
  netcl_boot* boot_;
  ClHandles cl_;
  bool is_cpu_ = false;
  Way way_ = Way::kPlain;
  // Of the whole group: whether any, and whether every rank works on the shared memory itself.
  bool any_zero_copy_ = false, all_zero_copy_ = false;
  std::optional<bool> stream_;
  uint64_t chunk_bytes_ = 0, spin_ns_ = 0;
  bool chunk_given_ = false;  // by Options
  // The ranks reduce in proportion to their threads: rank r from shares_[r] to shares_[r + 1] of
  // shares_[n_ranks].
  std::vector<uint64_t> shares_;
  SharedState* shared_ = nullptr;
  std::unique_ptr<SmallArea> small_;
  std::unique_ptr<Reducers> reducers_;
  std::unique_ptr<DeviceReducer> device_reducer_;  // where devices may reduce
  std::string reduction_;
  uint32_t device_redops_ = 0;  // a bit for each reduction that every rank's device does
  std::vector<std::unique_ptr<Bucket>> buckets_;

  std::mutex mutex_;  // of this rank's threads; guards what follows up to `stop_`
  std::condition_variable posted_changed_, completed_changed_;
  std::deque<Collective> posted_;
  uint64_t next_sequence_ = 1, completed_ = 0;
  std::optional<Problem> problem_;
  bool closing_ = false, running_ = false;
  std::atomic<bool> stop_{false};  // whoever runs a collective leaves its waits

  uint64_t chunks_done_ = 0;  // of whoever runs a collective
  std::thread progress_;
};

}  // namespace netcl::host_transport

#endif  // NETCL_PLUGINS_TRANSPORT_HOST_GROUP_H_
