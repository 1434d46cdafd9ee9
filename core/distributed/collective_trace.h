// CollectiveTrace: puts a Communicator's collectives and the waits for them into a trace.
//
// A collective begins where this rank's data is ready and ends where a wait for it returns. Waits
// that return at once have seen it late: the record carries "late", and its end is an upper bound.
// Ownership: communicator and trace outlive it. Threads: the queue's.
#ifndef NETCL_CORE_DISTRIBUTED_COLLECTIVE_TRACE_H_
#define NETCL_CORE_DISTRIBUTED_COLLECTIVE_TRACE_H_

#include <cstdint>
#include <map>
#include <string>

#include "core/cl/trace.h"
#include "core/collective/communicator.h"

namespace netcl {

class CollectiveTrace : public CollectiveObserver {
 public:
  CollectiveTrace(Communicator& communicator, Trace& trace);
  CollectiveTrace(const CollectiveTrace&) = delete;
  CollectiveTrace& operator=(const CollectiveTrace&) = delete;
  ~CollectiveTrace() override;

  void posted(Ticket ticket, const netcl_coll& collective) override;
  void waiting(Ticket ticket) override;
  void waited(Ticket ticket) override;

 private:
  struct InFlight {
    std::string name;
    uint64_t posted_ns, bytes, number;
    cl::Event ready;
  };
  Communicator& communicator_;
  Trace& trace_;
  std::map<uint64_t, InFlight> in_flight_;  // by ticket
  uint64_t number_ = 0;                     // the same on all ranks
  uint64_t wait_begin_ns_ = 0;
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_COLLECTIVE_TRACE_H_
