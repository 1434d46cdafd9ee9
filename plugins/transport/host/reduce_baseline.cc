#include "plugins/transport/host/reduce_loops.h"

namespace netcl::host_transport {

const ReduceTable& baseline_reductions() { return kTable; }

}  // namespace netcl::host_transport
