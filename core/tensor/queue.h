// A device's in-order queue with its memory pool and bounded run-ahead.
//
// Work enqueued here runs in order, so a buffer whose last user is enqueued may be handed out again
// at once: the pool never waits. The number of commands in flight is bounded (throttle), so a fast
// frontend cannot outgrow memory. Threads: one at a time.
#ifndef NETCL_CORE_TENSOR_QUEUE_H_
#define NETCL_CORE_TENSOR_QUEUE_H_

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/cl/device.h"

namespace netcl {

// Device memory that returns to its queue's pool when the last user lets go.
class Storage {
 public:
  const cl::Buffer& buffer() const { return buffer_; }
  size_t size_bytes() const { return size_bytes_; }

 private:
  friend class Queue;
  cl::Buffer buffer_;
  size_t size_bytes_ = 0;
};

class Queue : public std::enable_shared_from_this<Queue> {
 public:
  static std::shared_ptr<Queue> create(Device& device);

  Device& device() { return device_; }
  const cl::CommandQueue& cl() const { return queue_; }

  // At least size_bytes of uninitialised device memory. Errors: kDevice, naming `what`.
  std::shared_ptr<Storage> allocate(size_t size_bytes, const std::string& what);

  // Tells the queue that `commands` were enqueued. Every kInterval commands it marks the stream, and
  // waits for the mark of kMaxMarks intervals ago. Errors of asynchronous work: kDevice.
  void enqueued(size_t commands);
  // Waits for everything enqueued so far. Errors: kDevice.
  void finish();

  size_t pool_bytes() const { return pool_bytes_; }  // device memory held, in use or free

 private:
  explicit Queue(Device& device);
  void give_back(cl::Buffer buffer, size_t size_bytes);
  void wait(const cl::Event& event);

  static constexpr size_t kInterval = 128;
  static constexpr size_t kMaxMarks = 8;

  Device& device_;
  cl::CommandQueue queue_;
  std::multimap<size_t, cl::Buffer> free_;
  std::deque<cl::Event> marks_;
  size_t since_mark_ = 0;
  size_t pool_bytes_ = 0;
};

}  // namespace netcl

#endif  // NETCL_CORE_TENSOR_QUEUE_H_
