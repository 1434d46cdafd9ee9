// DeviceReducer: a rank's device adds up by itself what the other ranks have put into shared
// memory.
//
// Another rank's chunk is copied into scratch memory of the device, next to this rank's own, which
// never left it, and a kernel reduces them in rank order. Copies and kernels run on queues of their
// own, so the next chunk comes while one is added.
// Ownership: owns scratch, kernels and the kernels' queue. Threads: one at a time.
#ifndef NETCL_PLUGINS_TRANSPORT_HOST_DEVICE_REDUCER_H_
#define NETCL_PLUGINS_TRANSPORT_HOST_DEVICE_REDUCER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/transport/host/cl_handles.h"
#include "plugins/transport/reduce_kernels.h"

namespace netcl::host_transport {

class DeviceReducer {
 public:
  // `directory`: of the kernels' files. Up to `most_ahead` chunks of at most `chunk_bytes` are in
  // work at once. Throws Failure.
  DeviceReducer(const ClHandles& cl, const std::string& directory, uint32_t rank, uint32_t n_ranks,
                uint64_t chunk_bytes, uint64_t most_ahead);
  DeviceReducer(const DeviceReducer&) = delete;
  DeviceReducer& operator=(const DeviceReducer&) = delete;
  ~DeviceReducer();

  // f32 sums and means, where the device's arithmetic has the host's bits.
  bool can_reduce(uint32_t dtype, uint32_t redop) const;

  struct Part {
    uint32_t dtype, redop;
    cl_mem bucket;                 // of this rank's contribution, and of the result in its place
    uint64_t offset_bytes, count;  // elements
    uint64_t element_bytes;
    std::vector<const void*> peers;  // what each rank gave for them; this rank's own is not read
    const double* weights;           // of the ranks, or nullptr: 1 each
  };
  // Enqueues the copies and the kernel of chunk `index`; chunk `index` - most_ahead is done.
  // Returns the event of the result. Throws Failure.
  cl_event reduce(uint64_t index, const Part& part);

 private:
  ClHandles cl_;
  uint32_t rank_, n_ranks_;
  uint64_t chunk_bytes_, most_ahead_;
  transport::ReduceKernels kernels_;
  cl_command_queue queue_ = nullptr;
  std::vector<cl_mem> scratch_;  // most_ahead chunks of each other rank
};

}  // namespace netcl::host_transport

#endif  // NETCL_PLUGINS_TRANSPORT_HOST_DEVICE_REDUCER_H_
