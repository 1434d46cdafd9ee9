// ReduceKernels: reduces the ranks' contributions on a device, with the bits of the rank order that
// kernels/p2p/reduce_ranks.cl states.
//
// Ownership: owns programs and kernels; retains the context. Threads: one at a time.
#ifndef NETCL_PLUGINS_TRANSPORT_REDUCE_KERNELS_H_
#define NETCL_PLUGINS_TRANSPORT_REDUCE_KERNELS_H_

#include <CL/cl.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace netcl::transport {

constexpr uint32_t kMaxReducedRanks = 8;  // arguments of the kernel

// Bytes of one element of a netcl_dtype_e that the kernels reduce; 0 for any other.
size_t reduced_element_bytes(uint32_t dtype);

// What a rank gives: elements from `first` on. `weight` is read by NETCL_MEAN only.
struct ReduceInput {
  cl_mem buffer = nullptr;
  uint64_t first = 0;
  double weight = 1;
};

class ReduceKernels {
 public:
  // `directory`: of storage.cl and reduce_ranks.cl. Builds what training needs, the sum of f32, so
  // that no step waits for a compiler. Throws Failure: NETCL_E_STATE for a file that is not there,
  // NETCL_E_DEVICE for what does not build.
  ReduceKernels(cl_context context, cl_device_id device, std::string directory, uint32_t n_ranks);
  ReduceKernels(const ReduceKernels&) = delete;
  ReduceKernels& operator=(const ReduceKernels&) = delete;
  ~ReduceKernels();

  // Whether the device gives the bits of the host: sums need denormals, means an exact division.
  bool is_exact(uint32_t dtype, uint32_t redop) const;

  // Enqueues the reduction of `count` elements of every rank's input (in rank order) to the
  // elements of `out` from `first` on, which may be an input's own. Returns its event. Throws
  // Failure.
  cl_event enqueue(cl_command_queue queue, uint32_t dtype, uint32_t redop,
                   const std::vector<ReduceInput>& inputs, cl_mem out, uint64_t first,
                   uint64_t count, const std::vector<cl_event>& after);

 private:
  cl_kernel kernel(uint32_t dtype, uint32_t redop);
  cl_kernel build(uint32_t dtype, uint32_t redop) const;

  cl_context context_;
  cl_device_id device_;
  const std::string directory_;
  const uint32_t n_ranks_;
  cl_device_fp_config precision_ = 0;  // of f32
  std::map<std::pair<uint32_t, uint32_t>, cl_kernel> built_;
};

}  // namespace netcl::transport

#endif  // NETCL_PLUGINS_TRANSPORT_REDUCE_KERNELS_H_
