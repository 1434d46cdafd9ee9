#include "core/tensor/queue.h"

#include <algorithm>

namespace netcl {

namespace {

// Sizes are rounded so that few distinct ones exist and buffers find a second user: powers of two
// up to 1 MiB, then multiples of 1 MiB.
size_t rounded_size(size_t size_bytes) {
  constexpr size_t kMiB = size_t{1} << 20;
  if (size_bytes > kMiB) return (size_bytes + kMiB - 1) / kMiB * kMiB;
  size_t size = 512;
  while (size < size_bytes) size *= 2;
  return size;
}

}  // namespace

Queue::Queue(Device& device) : device_(device), queue_(device.make_queue()) {}

std::shared_ptr<Queue> Queue::create(Device& device) { return std::shared_ptr<Queue>(new Queue(device)); }

std::shared_ptr<Storage> Queue::allocate(size_t size_bytes, const std::string& what) {
  const size_t size = rounded_size(size_bytes);
  auto storage = std::make_unique<Storage>();
  storage->size_bytes_ = size;
  const auto found = free_.find(size);
  if (found != free_.end()) {
    storage->buffer_ = std::move(found->second);
    free_.erase(found);
  } else {
    storage->buffer_ = device_.make_buffer(size, what);
    pool_bytes_ += size;
  }
  const std::weak_ptr<Queue> pool = weak_from_this();
  return std::shared_ptr<Storage>(storage.release(), [pool](Storage* s) {
    if (const auto queue = pool.lock()) queue->give_back(std::move(s->buffer_), s->size_bytes_);
    delete s;
  });
}

void Queue::give_back(cl::Buffer buffer, size_t size_bytes) { free_.emplace(size_bytes, std::move(buffer)); }

void Queue::wait(const cl::Event& event) {
  with_cl_errors("waiting for " + device_.info().name, [&] { event.wait(); });
}

void Queue::enqueued(size_t commands) {
  since_mark_ += commands;
  if (since_mark_ < kInterval) return;
  since_mark_ = 0;
  with_cl_errors("marking the queue of " + device_.info().name, [&] {
    cl::Event mark;
    queue_.enqueueMarkerWithWaitList(nullptr, &mark);
    queue_.flush();
    marks_.push_back(std::move(mark));
  });
  if (marks_.size() > kMaxMarks) {
    wait(marks_.front());
    marks_.pop_front();
  }
}

void Queue::finish() {
  marks_.clear();
  since_mark_ = 0;
  with_cl_errors("waiting for " + device_.info().name, [&] { queue_.finish(); });
}

}  // namespace netcl
