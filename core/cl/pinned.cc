#include "core/cl/pinned.h"

#include <algorithm>

namespace netcl {

PinnedBuffer::PinnedBuffer(const Device& device, const cl::CommandQueue& queue, size_t size_bytes,
                           const std::string& what)
    : queue_(queue) {
  const size_t size = std::max<size_t>(size_bytes, 4);
  with_cl_errors("allocating " + std::to_string(size) + " bytes of pinned memory for " + what, [&] {
    buffer_ = cl::Buffer(device.context(), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size);
    data_ = queue_.enqueueMapBuffer(buffer_, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, size);
  });
}

PinnedBuffer::~PinnedBuffer() {
  if (data_ == nullptr) return;
  cl_event done = nullptr;  // errors cannot leave a destructor; the context releases what is left
  if (::clEnqueueUnmapMemObject(queue_(), buffer_(), data_, 0, nullptr, &done) == CL_SUCCESS) {
    ::clWaitForEvents(1, &done);
    ::clReleaseEvent(done);
  }
}

}  // namespace netcl
