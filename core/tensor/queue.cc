#include "core/tensor/queue.h"

#include <algorithm>

namespace netcl {

Queue::Queue(Device& device, Trace* trace)
    : device_(device),
      trace_(trace),
      queue_(device.make_queue(trace != nullptr)),
      reads_(device.make_queue()) {}

std::shared_ptr<Queue> Queue::create(Device& device, Trace* trace) {
  return std::shared_ptr<Queue>(new Queue(device, trace));
}

// Sizes are rounded so that few distinct ones exist and buffers find a second user: powers of two
// up to 1 MiB, then multiples of 1 MiB, but not beyond what the device allocates.
size_t Queue::rounded_size(size_t size_bytes) const {
  constexpr size_t kMiB = size_t{1} << 20;
  if (size_bytes > kMiB) {
    const size_t rounded = (size_bytes + kMiB - 1) / kMiB * kMiB;
    const auto most = static_cast<size_t>(device_.info().max_alloc_bytes);
    return rounded > most ? size_bytes : rounded;
  }
  size_t size = 512;
  while (size < size_bytes) size *= 2;
  return size;
}

std::shared_ptr<Storage> Queue::lend(std::unique_ptr<Storage> storage) {
  return std::shared_ptr<Storage>(storage.release(), [pool = weak_from_this()](Storage* s) {
    std::unique_ptr<Storage> owned(s);
    if (const auto queue = pool.lock()) {
      owned->ready_ = cl::Event();
      queue->free_[owned->size_bytes_].push_back(std::move(owned));
    }
  });
}

std::shared_ptr<Storage> Queue::reuse(size_t size_bytes) {
  const auto found = free_.find(rounded_size(size_bytes));
  if (found == free_.end() || found->second.empty()) return nullptr;
  std::unique_ptr<Storage> storage = std::move(found->second.back());
  found->second.pop_back();
  return lend(std::move(storage));
}

std::shared_ptr<Storage> Queue::allocate(size_t size_bytes, const std::string& what) {
  if (auto storage = reuse(size_bytes)) return storage;
  auto storage = std::make_unique<Storage>();
  storage->size_bytes_ = rounded_size(size_bytes);
  storage->buffer_ = device_.make_buffer(storage->size_bytes_, what);
  pool_bytes_ += storage->size_bytes_;
  return lend(std::move(storage));
}

void Queue::throw_kept_error() const {
  if (error_) throw *error_;
}

template <typename Body>
void Queue::keep_error(const std::string& what, Body&& body) {
  throw_kept_error();
  try {
    with_cl_errors(what + " on " + device_.info().name, body);
  } catch (const Error& e) {
    error_ = e;
    throw;
  }
}

void Queue::wait(const cl::Event& event) {
  keep_error("waiting for asynchronous work", [&] { event.wait(); });
}

void Queue::enqueued(size_t commands, const cl::Event& last) {
  since_mark_ += commands;
  if (since_mark_ < kInterval) return;
  since_mark_ = 0;
  keep_error("marking the queue", [&] {
    marks_.push_back(last);
    if (last() == nullptr) queue_.enqueueMarkerWithWaitList(nullptr, &marks_.back());
    queue_.flush();
  });
  if (marks_.size() < kMaxMarks) return;
  for (size_t i = 0; i < kMaxMarks / 2; ++i) {
    const cl::Event oldest = std::move(marks_.front());
    marks_.pop_front();
    if (i + 1 == kMaxMarks / 2) wait(oldest);  // in order: those before it are done, too
  }
}

void Queue::finish() {
  throw_kept_error();
  const std::deque<cl::Event> marks = std::move(marks_);
  marks_.clear();
  since_mark_ = 0;
  keep_error("waiting for asynchronous work", [&] {
    queue_.finish();
    for (const cl::Event& mark : marks) mark.wait();  // done: only their errors are asked for
  });
}

void Queue::read(const Storage& from, size_t size_bytes, void* to) {
  const bool known = from.ready_() != nullptr;
  if (known) wait(from.ready_);
  keep_error("reading a tensor", [&] {
    (known ? reads_ : queue_).enqueueReadBuffer(from.buffer_, CL_TRUE, 0, size_bytes, to);
  });
}

void Queue::write(Storage& to, size_t size_bytes, const void* from) {
  keep_error("writing a tensor", [&] {
    queue_.enqueueWriteBuffer(to.buffer_, CL_TRUE, 0, size_bytes, from, nullptr, &to.ready_);
  });
}

void wait_all(const std::vector<std::shared_ptr<Queue>>& queues) {
  for (const auto& queue : queues) {
    with_cl_errors("flushing a queue of " + queue->device().info().name,
                   [&] { queue->cl().flush(); });
  }
  std::optional<Error> error;
  for (const auto& queue : queues) {
    try {
      queue->finish();
    } catch (const Error& e) {
      if (!error) error = e;
    }
  }
  if (error) throw *error;
}

}  // namespace netcl
