// The commands of one collective, on the queues of all ranks.
#ifndef NETCL_PLUGINS_TRANSPORT_P2P_LAUNCH_H_
#define NETCL_PLUGINS_TRANSPORT_P2P_LAUNCH_H_

#include <vector>

#include "plugins/transport/p2p/team.h"

namespace netcl::p2p_transport {

// Enqueues the collective that the postings (one a rank, equal but for bucket, ready and weight)
// describe, and flushes. Returns retained events after which it is done. Two ranks reduce
// everything for themselves, each with one kernel; more than two reduce a part each and fetch the
// others'. Throws Failure.
std::vector<cl_event> launch_collective(const std::vector<RankDevice*>& devices,
                                        const std::vector<Posting*>& postings);

}  // namespace netcl::p2p_transport

#endif  // NETCL_PLUGINS_TRANSPORT_P2P_LAUNCH_H_
