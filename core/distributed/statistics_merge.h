// Statistics of the replicas (running means of batch norm) at the end of an epoch.
#ifndef NETCL_CORE_DISTRIBUTED_STATISTICS_MERGE_H_
#define NETCL_CORE_DISTRIBUTED_STATISTICS_MERGE_H_

#include <cstdint>

#include "core/distributed/group.h"
#include "core/distributed/replica.h"

namespace netcl {

// Makes the replicas' statistics one, by each slot's merge rule. `samples`: what this rank has seen
// since the last merge. Returns false where nothing had to be merged. Collective.
bool merge_statistics(Replica& replica, const Group& group, double samples);

// Before anything is evaluated or saved with them. Errors: kTraining for a statistic that is no
// number, naming its slot.
void check_statistics(Replica& replica, int64_t step);

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_STATISTICS_MERGE_H_
