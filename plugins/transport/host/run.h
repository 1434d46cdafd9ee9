// HostGroup::Run: one collective from its descriptor to its result. See group.h.
// Threads: one thread runs it; the group's reducers call wait_for and reduce.
#ifndef NETCL_PLUGINS_TRANSPORT_HOST_RUN_H_
#define NETCL_PLUGINS_TRANSPORT_HOST_RUN_H_

#include <atomic>
#include <memory>
#include <vector>

#include "plugins/transport/host/group.h"

namespace netcl::host_transport {

class HostGroup::Run : public Reducers::Work {
 public:
  // `host`: of a caller who waits meanwhile and so must hear of a stopped group; or nullptr.
  Run(HostGroup& group, const Collective& collective, const plugin::Host* host);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() override;
  // Throws Failure, and Reported if the host has stopped the group.
  void operator()();
  uint64_t chunks() const { return n_chunks_; }

  uint64_t pieces() const override { return n_chunks_ * pieces_per_chunk_; }
  bool wait_for(uint64_t piece) override;
  void reduce(uint64_t piece) override;

 private:
  // How the data flows: each rank for itself out of the stages; slots, shares, result; slots, and
  // from there to every other rank's device, which reduces; or owners straight into the result.
  enum class Flow { kSmall, kReduce, kExchange, kMove };

  void start();
  void map_buffers();
  void unmap_buffers(cl_event* done);

  // The stages. Each returns true if anything moved.
  bool copy_in();
  bool place();
  bool copy_out();

  bool all_published(uint64_t chunk) const;
  bool all_placed(uint64_t chunk) const;
  bool can_place() const;
  bool can_exchange() const;
  bool exchange();
  bool can_copy_out() const;
  void publish(uint64_t chunks);
  void set_placed(uint64_t chunks);
  void place_small();
  void place_chunk(uint64_t chunk);

  Range chunk(uint64_t index) const;
  // The rank's share of a chunk, and a piece of it.
  Range share(uint64_t index) const;
  void reduce_range(Range range);
  // Byte addresses of an element.
  char* slot(uint32_t rank, uint64_t element) const;
  char* result(uint64_t element) const;
  uint64_t offset(uint64_t element) const;

  // Spins, then sleeps, until something may have changed. Throws when the group is broken or a peer
  // is late.
  void idle();
  void check_peers() const;
  [[noreturn]] void report_late() const;

  HostGroup& group_;
  const Collective& coll_;
  const plugin::Host* host_;
  SharedState& shared_;
  RankLine& own_;
  Bucket* bucket_;
  Flow flow_;
  bool device_copies_ = false;  // data goes between device and shared memory by copies
  bool threaded_ = false;       // the group's reducers reduce
  bool stream_ = false;
  std::atomic<bool> checked_{false};  // descriptors agree
  uint64_t chunk_elements_, n_chunks_, base_, pieces_per_chunk_ = 1;
  Range given_, gotten_;
  std::vector<double> weights_;
  uint64_t n_started_ = 0, n_published_ = 0, n_exchanged_ = 0, n_placed_ = 0,
           n_output_ = 0;  // chunks; exchanged: given to the device to reduce
  std::vector<std::atomic<uint32_t>> pieces_done_;  // of each chunk
  uint64_t last_progress_ns_, last_asked_ns_;
  CopyLane in_, out_;
  void* mapped_send_ = nullptr;
  void* mapped_recv_ = nullptr;
};

}  // namespace netcl::host_transport

#endif  // NETCL_PLUGINS_TRANSPORT_HOST_RUN_H_
