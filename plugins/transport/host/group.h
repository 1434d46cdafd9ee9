// One rank's end of a group: takes collectives and works them off in a progress thread.
//
// A collective is cut into chunks. Per chunk each rank publishes its contribution in its slot;
// once all have published, each rank reduces its own slice over all slots, in rank order, into the
// shared result and says so; once all have, the chunk may go to the device. The three stages of
// different chunks overlap; there is no lock and no barrier between ranks, only counters. In small
// buckets every rank reduces everything for itself and the second wait falls away.
//
// Why slots can be used again: the progress thread takes one collective after the other. A rank
// that publishes in collective k+1 has finished k, so nobody who has seen that needs the result of
// k any more; and it finished k only after all had reduced it (large) or, since stages alternate,
// after all had published k, hence finished k-1 (small).
//
// Posting says that, once `ready` is complete, the rank no longer reads the same elements of
// `recv`: the ranks' results may be the same memory. `recv` must not be written.
//
// Errors: the first one is kept and thrown by every later wait of an unfinished collective; peers
// learn of it through the shared state. The host's own word (boot_status) is asked by wait().
// Threads: abort: any; the rest: [group].
#ifndef NETCL_PLUGINS_TRANSPORT_HOST_GROUP_H_
#define NETCL_PLUGINS_TRANSPORT_HOST_GROUP_H_

#include <CL/cl.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/abi/netcl_plugin.hpp"
#include "plugins/transport/host/bucket.h"
#include "plugins/transport/host/shared_state.h"

namespace netcl::host_transport {

struct Options {
  // 0: by device (the copies of a processor are cut finer). The ranks agree on the largest.
  uint64_t chunk_bytes = 0;
  bool allow_zero_copy = true;
};

class HostGroup : public plugin::TransportGroup {
 public:
  HostGroup(const plugin::Host& host, const netcl_group_spec& spec, const Options& options);
  ~HostGroup() override;

  void bucket_new(const plugin::Host& host, uint64_t bytes, netcl_bucket* out) override;
  void bucket_free(netcl_bucket* bucket) noexcept override;
  uint64_t post(const plugin::Host& host, const netcl_coll& collective) override;
  void wait(const plugin::Host& host, uint64_t ticket) override;
  void abort(std::string_view reason) noexcept override;

  bool zero_copy() const { return zero_copy_; }

 private:
  struct Posted {
    uint64_t sequence = 0;
    uint32_t kind = 0, dtype = 0, redop = 0, root = 0;
    uint64_t offset_bytes = 0, count = 0, element_bytes = 0;
    Bucket* bucket = nullptr;
    cl_event ready = nullptr;
    std::string name;
  };
  struct Problem {
    netcl_rc code;
    std::string text;
  };
  class Run;  // the collective in progress; run.cc

  void open_queue(const plugin::Host& host, const netcl_group_spec& spec);
  void agree_on_chunks(const plugin::Host& host, const Options& options, bool is_cpu);
  void check_posted(const netcl_coll& c) const;
  void progress_loop();
  // Keeps the first problem, tells the peers of it, wakes the waiters.
  void give_up(const Problem& problem, bool tell_peers = true) noexcept;

  uint32_t rank_, n_ranks_;
  uint64_t timeout_ns_;
  netcl_boot* boot_;
  ClHandles cl_;
  bool zero_copy_ = false;
  uint64_t chunk_bytes_ = 0;
  SharedState* shared_ = nullptr;
  std::vector<std::unique_ptr<Bucket>> buckets_;

  std::mutex mutex_;  // of this rank's threads; guards what follows up to `stop_`
  std::condition_variable posted_changed_, completed_changed_;
  std::deque<Posted> posted_;
  uint64_t next_sequence_ = 1, completed_ = 0;
  std::optional<Problem> problem_;
  bool closing_ = false, running_ = false;
  std::atomic<bool> stop_{false};  // the progress thread leaves its waits

  uint64_t chunks_done_ = 0;  // progress thread only
  std::thread progress_;
};

}  // namespace netcl::host_transport

#endif  // NETCL_PLUGINS_TRANSPORT_HOST_GROUP_H_
