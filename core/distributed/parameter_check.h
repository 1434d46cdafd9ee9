// Comparing the parameters of replicas that must hold the same bits.
//
// Ranks on devices of one kind run the same kernels on the same values, so their parameters never
// differ; if they do, memory, a driver or a kernel is at fault, and what is trained is worth
// nothing. Threads: the queue's.
#ifndef NETCL_CORE_DISTRIBUTED_PARAMETER_CHECK_H_
#define NETCL_CORE_DISTRIBUTED_PARAMETER_CHECK_H_

#include <cstdint>
#include <vector>

#include "core/distributed/group.h"
#include "core/distributed/replica.h"

namespace netcl {

// 64 bits of `count` floats' bytes; no signature.
uint64_t hash_floats(const float* values, size_t count);
// What a device computes with: name, driver, vendor.
uint64_t device_kind(const DeviceInfo& device);

// Compares parameters over the ranks of each kind. Collective; waits for the device.
// Errors: kTraining, on every rank, naming tensor, ranks and step.
void check_parameters(Replica& replica, const Group& group, int64_t step);

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_PARAMETER_CHECK_H_
