// Initial values of parameters: the same bits for the same seed on every machine and device.
#ifndef NETCL_CORE_NN_INIT_H_
#define NETCL_CORE_NN_INIT_H_

#include <cstdint>
#include <vector>

#include "core/nn/tracer.h"

namespace netcl {

// Values of a slot. They depend on the seed, the slot's position in the model and nothing else
// (Philox 4x32-10; normal values by Box and Muller's method in double precision).
std::vector<float> initial_values(const Slot& slot, uint64_t seed, uint32_t slot_index);

}  // namespace netcl

#endif  // NETCL_CORE_NN_INIT_H_
