// What is known of a device's part in a batch before anything was measured. Threads: any.
#ifndef NETCL_CORE_DISTRIBUTED_DEVICE_LIMITS_H_
#define NETCL_CORE_DISTRIBUTED_DEVICE_LIMITS_H_

#include <cstdint>
#include <vector>

#include "core/cl/device_info.h"
#include "core/distributed/finish_time.h"
#include "core/nn/step_graphs.h"

namespace netcl {

// The most rows of a pass, up to `most`, whose tensors the device holds: each in one piece, and all
// that live at the same time together. 0 if not even one fits. The scratch memory of kernels is not
// in it, and fused ops count as the ops that were recorded for them: which kernel runs is decided
// on the device.
int64_t rows_that_fit(const StepGraphs& graphs, const DeviceInfo& device, int64_t most);

// The above, and a multiple of 32 rows for a GPU: whole work-groups of every tile in use. A CPU's
// kernels take any number.
RankLimits limits_of(const StepGraphs& graphs, const DeviceInfo& device, int64_t most);

// Weights to begin with when nothing is known: even among devices of a kind; a CPU gets 1/32 of a
// GPU's rows, and a simulator of a CPU's, so that the first steps do not wait for them.
std::vector<double> first_weights(const std::vector<DeviceInfo>& devices);

}  // namespace netcl

#endif  // NETCL_CORE_DISTRIBUTED_DEVICE_LIMITS_H_
