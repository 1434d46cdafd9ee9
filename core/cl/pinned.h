// Host memory that a device copies from and to at full speed (CL_MEM_ALLOC_HOST_PTR, kept mapped).
#ifndef NETCL_CORE_CL_PINNED_H_
#define NETCL_CORE_CL_PINNED_H_

#include "core/cl/device.h"

namespace netcl {

class PinnedBuffer {
 public:
  // Errors: kDevice, naming `what`.
  PinnedBuffer(const Device& device, const cl::CommandQueue& queue, size_t size_bytes,
               const std::string& what);
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  ~PinnedBuffer();

  void* data() const { return data_; }

 private:
  cl::CommandQueue queue_;
  cl::Buffer buffer_;
  void* data_ = nullptr;
};

}  // namespace netcl

#endif  // NETCL_CORE_CL_PINNED_H_
