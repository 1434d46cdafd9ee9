#include "core/verify/guarded_buffer.h"

#include <algorithm>

namespace netcl {

GuardedBuffer::GuardedBuffer(Queue& queue, const std::vector<uint8_t>& content, uint8_t poison)
    : queue_(queue.cl()), size_(content.size()) {
  // A sub-buffer begins at the device's alignment.
  origin_ = std::max<size_t>(512, static_cast<size_t>(queue.device().info().base_align_bytes));
  image_.assign(2 * origin_ + size_, poison);
  std::copy(content.begin(), content.end(), image_.begin() + static_cast<ptrdiff_t>(origin_));
  with_cl_errors("a guarded buffer", [&] {
    whole_ = cl::Buffer(queue.device().context(), CL_MEM_READ_WRITE, image_.size());
    queue_.enqueueWriteBuffer(whole_, CL_TRUE, 0, image_.size(), image_.data());
    // OpenCL has no empty buffers: of an empty tensor even the first bytes are guard.
    const cl_buffer_region region{origin_, std::max<size_t>(size_, 4)};
    part_ = whole_.createSubBuffer(CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region);
  });
}

std::vector<uint8_t> GuardedBuffer::read_all() {
  std::vector<uint8_t> out(image_.size());
  with_cl_errors("reading a guarded buffer",
                 [&] { queue_.enqueueReadBuffer(whole_, CL_TRUE, 0, out.size(), out.data()); });
  return out;
}

std::vector<uint8_t> GuardedBuffer::read() {
  const std::vector<uint8_t> all = read_all();
  const auto begin = all.begin() + static_cast<ptrdiff_t>(origin_);
  return {begin, begin + static_cast<ptrdiff_t>(size_)};
}

bool GuardedBuffer::intact() {
  const std::vector<uint8_t> all = read_all();
  const auto head = static_cast<ptrdiff_t>(origin_), tail = static_cast<ptrdiff_t>(origin_ + size_);
  return std::equal(all.begin(), all.begin() + head, image_.begin()) &&
         std::equal(all.begin() + tail, all.end(), image_.begin() + tail);
}

bool GuardedBuffer::unchanged() { return read_all() == image_; }

}  // namespace netcl
