// One rank's device within the shared context: its queue and its reduction kernels.
//
// Ownership: owns the queue, programs and kernels; retains the context.
// Threads: one at a time (the team's lock).
#ifndef NETCL_PLUGINS_TRANSPORT_P2P_RANK_DEVICE_H_
#define NETCL_PLUGINS_TRANSPORT_P2P_RANK_DEVICE_H_

#include <CL/cl.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace netcl::p2p_transport {

constexpr uint32_t kMaxRanks = 8;  // arguments of the reduction kernel

// Throws Failure(NETCL_E_DEVICE) naming the call unless `code` is CL_SUCCESS.
void check_cl(cl_int code, const char* call);

// Bytes of one element of a netcl_dtype_e that can be reduced; 0 for any other.
size_t element_bytes(uint32_t dtype);

class RankDevice {
 public:
  // `kernels`: directory of storage.cl and reduce_ranks.cl. Throws Failure.
  RankDevice(cl_context context, cl_device_id device, std::string kernels, uint32_t n_ranks);
  RankDevice(const RankDevice&) = delete;
  RankDevice& operator=(const RankDevice&) = delete;
  ~RankDevice();

  cl_context context() const { return context_; }
  cl_command_queue queue() const { return queue_; }
  // The kernel for a data type and reduction, built when it is first asked for.
  cl_kernel kernel(uint32_t dtype, uint32_t redop);

 private:
  cl_kernel build(uint32_t dtype, uint32_t redop) const;

  cl_context context_;
  cl_device_id device_;
  const std::string kernels_;
  const uint32_t n_ranks_;
  cl_command_queue queue_ = nullptr;
  std::map<std::pair<uint32_t, uint32_t>, cl_kernel> built_;
};

}  // namespace netcl::p2p_transport

#endif  // NETCL_PLUGINS_TRANSPORT_P2P_RANK_DEVICE_H_
