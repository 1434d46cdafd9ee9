// Memory of a device in which a kernel's missteps show.
// Threads: those of the queue.
#ifndef NETCL_CORE_VERIFY_GUARDED_BUFFER_H_
#define NETCL_CORE_VERIFY_GUARDED_BUFFER_H_

#include <cstdint>
#include <vector>

#include "core/tensor/queue.h"

namespace netcl {

// `content` in the middle of a larger buffer whose rest is poison: 0xff, which is not a number as
// f32, or 0x7f. A kernel that reads beyond its input computes with poison; one that writes beyond
// its output is seen by intact().
class GuardedBuffer {
 public:
  GuardedBuffer(Queue& queue, const std::vector<uint8_t>& content, uint8_t poison);

  const cl::Buffer& buffer() const { return part_; }
  std::vector<uint8_t> read();  // the middle
  bool intact();                // the guard bands hold the poison still
  bool unchanged();             // nothing has been written at all

 private:
  std::vector<uint8_t> read_all();

  cl::CommandQueue queue_;
  cl::Buffer whole_, part_;
  std::vector<uint8_t> image_;  // as it was written
  size_t origin_, size_;
};

}  // namespace netcl

#endif  // NETCL_CORE_VERIFY_GUARDED_BUFFER_H_
