// Compiled for AVX2 and F16C: everything it includes is local to it, so that no function of
// another file can be replaced by one that older processors cannot run.
#include "plugins/transport/host/reduce_loops.h"

namespace netcl::host_transport {

const ReduceTable& avx2_reductions() { return kTable; }

}  // namespace netcl::host_transport
