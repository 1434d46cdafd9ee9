// Group: a rank's links to the other ranks of its run.
#ifndef NETCL_CORE_DISTRIBUTED_GROUP_H_
#define NETCL_CORE_DISTRIBUTED_GROUP_H_

#include <cstdint>

#include "core/collective/bootstrap.h"
#include "core/collective/communicator.h"
#include "core/distributed/group_sum.h"

namespace netcl {

// Links a rank to its group; all null when it is alone.
struct Group {
  Bootstrap* bootstrap = nullptr;
  Communicator* communicator = nullptr;
  const netcl_bucket* bucket = nullptr;
  GroupSum* sums = nullptr;  // holds at least the statistics' arena
  uint32_t rank = 0, n_ranks = 1;
};

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_GROUP_H_
