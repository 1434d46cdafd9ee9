#include "plugins/transport/p2p/rank_device.h"

#include <utility>

#include "core/abi/netcl_plugin.hpp"

namespace netcl::p2p_transport {

using plugin::Failure;

void check_cl(cl_int code, const char* call) {
  if (code == CL_SUCCESS) return;
  throw Failure(
      NETCL_E_DEVICE,
      std::string("p2p transport: ") + call + " failed with OpenCL error " + std::to_string(code),
      code);
}

RankDevice::RankDevice(cl_context context, cl_device_id device, std::string kernels,
                       uint32_t n_ranks)
    : context_(context), kernels_(context, device, std::move(kernels), n_ranks) {
  cl_int code = CL_SUCCESS;
  queue_ = clCreateCommandQueue(context_, device, 0, &code);
  check_cl(code, "clCreateCommandQueue");
}

RankDevice::~RankDevice() { clReleaseCommandQueue(queue_); }

}  // namespace netcl::p2p_transport
