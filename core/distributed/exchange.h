// Exchange: how the replicas' gradients of a step become one update of the parameters.
//
// Commit rule: nothing of a step changes what is kept (parameters, statistics, optimiser state)
// before all ranks have reduced it, so a step that fails can be dropped and repeated.
// Threads: the queue's.
#ifndef NETCL_CORE_DISTRIBUTED_EXCHANGE_H_
#define NETCL_CORE_DISTRIBUTED_EXCHANGE_H_

#include <cstdint>

#include "core/distributed/group.h"
#include "core/distributed/replica.h"

namespace netcl {

class Exchange {
 public:
  Exchange(Replica& replica, Group group) : replica_(replica), group_(group) {}

  // Before anything of the step is enqueued. `step` counts from 1.
  void begin(int64_t step);
  // After all passes of the step are enqueued: adds gradients and sums up over the ranks and
  // updates. Returns the seconds from begin() until this rank's own gradients were ready; 0 for a
  // replica that is alone, which waits for nothing. Errors: kTraining for a lost or late peer.
  double finish(double lr);

 private:
  void note_collective(const char* name) const;

  Replica& replica_;
  const Group group_;
  int64_t step_ = 0;
  double begin_seconds_ = 0;
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_EXCHANGE_H_
