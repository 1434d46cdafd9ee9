// One rank's device within the shared context: its queue and its reduction kernels.
//
// Ownership: owns the queue, programs and kernels, which retain the context.
// Threads: one at a time (the team's lock).
#ifndef NETCL_PLUGINS_TRANSPORT_P2P_RANK_DEVICE_H_
#define NETCL_PLUGINS_TRANSPORT_P2P_RANK_DEVICE_H_

#include <CL/cl.h>

#include <cstdint>
#include <string>

#include "plugins/transport/reduce_kernels.h"

namespace netcl::p2p_transport {

// Throws Failure(NETCL_E_DEVICE) naming the call unless `code` is CL_SUCCESS.
void check_cl(cl_int code, const char* call);

class RankDevice {
 public:
  // `kernels`: directory of storage.cl and reduce_ranks.cl. Throws Failure.
  RankDevice(cl_context context, cl_device_id device, std::string kernels, uint32_t n_ranks);
  RankDevice(const RankDevice&) = delete;
  RankDevice& operator=(const RankDevice&) = delete;
  ~RankDevice();

  cl_context context() const { return context_; }
  cl_command_queue queue() const { return queue_; }
  transport::ReduceKernels& kernels() { return kernels_; }

 private:
  cl_context context_;
  transport::ReduceKernels kernels_;
  cl_command_queue queue_ = nullptr;
};

}  // namespace netcl::p2p_transport

#endif  // NETCL_PLUGINS_TRANSPORT_P2P_RANK_DEVICE_H_
