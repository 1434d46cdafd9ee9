// What a fused op means, in double precision: its body, run by the references of its ops.
#ifndef NETCL_CORE_OPS_FUSED_REFERENCE_H_
#define NETCL_CORE_OPS_FUSED_REFERENCE_H_

#include <vector>

#include "core/ops/fused.h"

namespace netcl {

// The outputs for concrete inputs, those of a batch of `batch` samples. What nothing leads to is
// zero. Errors: kUsage if the inputs are not the op's. Threads: any.
std::vector<HostTensor> fused_reference(const FusedOp& op, int64_t batch,
                                        const std::vector<HostTensor>& in);

}  // namespace netcl

#endif  // NETCL_CORE_OPS_FUSED_REFERENCE_H_
