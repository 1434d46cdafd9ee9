// What one tensor may take on a device, said before anything is allocated: a tensor that is too
// large is named with its size, the limit, and what would make it fit. Threads: any.
#ifndef NETCL_CORE_GRAPH_SIZE_LIMITS_H_
#define NETCL_CORE_GRAPH_SIZE_LIMITS_H_

#include <string>

#include "core/cl/device_info.h"
#include "core/tensor/shape.h"

namespace netcl {

// "17179869184 bytes (16.0 GiB)".
std::string bytes_text(double bytes);

// Whether the device holds the concrete `desc` in one piece.
bool fits(const DeviceInfo& device, const TensorDesc& desc);
// Fails if the concrete `desc` is larger than the device allocates in one piece, or has more
// elements than kernels count. `what` names the tensor, `advice` says what makes it smaller; both
// are put into a sentence. Errors: kDevice.
void require_size(const DeviceInfo& device, const TensorDesc& desc, const std::string& what,
                  const std::string& advice);
// The same for `bytes` of memory.
void require_bytes(const DeviceInfo& device, double bytes, const std::string& what,
                   const std::string& advice);

// Ways to make the tensors of a step smaller, and those of a model whatever its batch.
constexpr const char* kSmallerBatch =
    "lower batch_size, raise accumulate (the same batch in several passes), use precision bf16, "
    "or spread the batch over more devices";
constexpr const char* kSmallerModel =
    "make the model's layers smaller, or use a device that allocates more";

}  // namespace netcl

#endif  // NETCL_CORE_GRAPH_SIZE_LIMITS_H_
