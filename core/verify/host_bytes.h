// A tensor's elements as a device holds them, and back.
// Threads: any.
#ifndef NETCL_CORE_VERIFY_HOST_BYTES_H_
#define NETCL_CORE_VERIFY_HOST_BYTES_H_

#include <cstdint>
#include <vector>

#include "core/ops/op.h"

namespace netcl {

// Rounds each element to the tensor's type.
std::vector<uint8_t> to_bytes(const HostTensor& tensor);
HostTensor from_bytes(const TensorDesc& desc, const std::vector<uint8_t>& bytes);

}  // namespace netcl

#endif  // NETCL_CORE_VERIFY_HOST_BYTES_H_
