// HostGroup::Run: one collective from its descriptor to its result. See group.h.
// Threads: the progress thread.
#ifndef NETCL_PLUGINS_TRANSPORT_HOST_RUN_H_
#define NETCL_PLUGINS_TRANSPORT_HOST_RUN_H_

#include <string>
#include <vector>

#include "plugins/transport/host/group.h"

namespace netcl::host_transport {

class HostGroup::Run {
 public:
  Run(HostGroup& group, const Posted& posted);
  ~Run();
  // Throws Failure.
  void operator()();
  uint64_t chunks() const { return n_chunks_; }

 private:
  struct Slice {
    uint64_t first, count;  // elements of the collective
  };
  void announce();
  // Waits until the collective's data may be read, or starts its copies to the slot.
  void start_input();
  bool input_done(uint64_t chunk);
  void publish(uint64_t chunk);
  bool all_at_least(bool reduced, uint64_t value) const;
  void check_descriptors();
  std::string describe(uint32_t rank) const;
  Slice chunk_elements(uint64_t chunk) const;
  void reduce_chunk(uint64_t chunk);
  void output_chunk(uint64_t chunk);
  void finish_output();
  // One round over the stages; true if anything moved.
  bool advance();
  // Sleeps until something may have changed. Throws when the group is broken or a peer is late.
  void idle();
  [[noreturn]] void report_late() const;

  HostGroup& group_;
  const Posted& posted_;
  SharedState& shared_;
  RankLine& own_;
  bool single_wave_;  // nothing is shared but the contributions
  bool copies_out_;   // results go to the device by a copy
  bool checked_ = false;
  uint64_t chunk_elements_, n_chunks_, base_;
  uint64_t n_published_ = 0, n_reduced_ = 0, n_output_ = 0;
  uint64_t last_progress_ns_;
  unsigned spins_;
  std::vector<cl_event> input_events_;
  cl_event last_output_ = nullptr;
  void* mapped_send_ = nullptr;
  void* mapped_recv_ = nullptr;
};

}  // namespace netcl::host_transport

#endif  // NETCL_PLUGINS_TRANSPORT_HOST_RUN_H_
