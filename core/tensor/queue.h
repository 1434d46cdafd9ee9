// A device's in-order queue with its memory pool and bounded run-ahead.
//
// Work enqueued here runs in order, so a buffer whose last user is enqueued may be handed out again
// at once: the pool never waits. The number of commands in flight is bounded, so a fast frontend
// cannot outgrow memory. A value is read through a second queue, after its own event only: work
// enqueued later does not delay it. Threads: one at a time.
#ifndef NETCL_CORE_TENSOR_QUEUE_H_
#define NETCL_CORE_TENSOR_QUEUE_H_

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/cl/device.h"
#include "core/cl/trace.h"

namespace netcl {

// Device memory that returns to its queue's pool when the last user lets go.
class Storage {
 public:
  const cl::Buffer& buffer() const { return buffer_; }
  size_t size_bytes() const { return size_bytes_; }

  // The event of the last command that writes this memory; a null one if it is not known.
  const cl::Event& ready() const { return ready_; }
  void set_ready(cl::Event event) { ready_ = std::move(event); }

 private:
  friend class Queue;
  cl::Buffer buffer_;
  size_t size_bytes_ = 0;
  cl::Event ready_;
};

class Queue : public std::enable_shared_from_this<Queue> {
 public:
  // With a trace (which outlives the queue) the commands' events know their times, and what is
  // enqueued in its window is told to it.
  static std::shared_ptr<Queue> create(Device& device, Trace* trace = nullptr);

  Device& device() { return device_; }
  const cl::CommandQueue& cl() const { return queue_; }
  Trace* trace() const { return trace_; }  // null: nobody wants to know
  // The trace, if it records now.
  Trace* recording() const { return trace_ != nullptr && trace_->recording() ? trace_ : nullptr; }

  // At least size_bytes of uninitialised device memory. Errors: kDevice, naming `what`.
  std::shared_ptr<Storage> allocate(size_t size_bytes, const std::string& what);
  // The same from the pool alone: null if it has none of this size.
  std::shared_ptr<Storage> reuse(size_t size_bytes);

  // Tells the queue that `commands` were enqueued, the last of them with event `last` (null: a
  // marker is enqueued where one is needed). Every kInterval commands an event is kept; with
  // kMaxMarks of them in flight the host sleeps until half are done. Errors of asynchronous work:
  // kDevice.
  void enqueued(size_t commands, const cl::Event& last = cl::Event());

  // All waits: an error of asynchronous work (kDevice) is kept and thrown by this and every later
  // one. Waits for everything enqueued so far.
  void finish();
  // Waits for one event of this device.
  void wait(const cl::Event& event);
  // Copies the first bytes of `from` to the host, as soon as its last writer is done; if that is
  // not known, after everything enqueued so far.
  void read(const Storage& from, size_t size_bytes, void* to);
  // Overwrites the first bytes of `to`; returns when `from` may be reused.
  void write(Storage& to, size_t size_bytes, const void* from);

  size_t pool_bytes() const { return pool_bytes_; }  // device memory held, in use or free

 private:
  Queue(Device& device, Trace* trace);
  std::shared_ptr<Storage> lend(std::unique_ptr<Storage> storage);
  size_t rounded_size(size_t size_bytes) const;
  void throw_kept_error() const;
  template <typename Body>
  void keep_error(const std::string& what, Body&& body);

  // At most 16,384 commands in flight: some 10 MiB of a driver's records. The bound is this wide,
  // and waiting drains half of it, because a host that enqueues while the driver retires commands
  // slows both: on PoCL a bound of 1,024, met command by command, doubles the time of a long chain.
  static constexpr size_t kInterval = 512;
  static constexpr size_t kMaxMarks = 32;

  Device& device_;
  Trace* const trace_;
  cl::CommandQueue queue_, reads_;
  std::map<size_t, std::vector<std::unique_ptr<Storage>>> free_;  // by size
  std::deque<cl::Event> marks_;
  size_t since_mark_ = 0;
  size_t pool_bytes_ = 0;
  std::optional<Error> error_;
};

// Waits for everything on all queues; they work at the same time. Errors: kDevice, the first one,
// after all queues were waited for.
void wait_all(const std::vector<std::shared_ptr<Queue>>& queues);

}  // namespace netcl

#endif  // NETCL_CORE_TENSOR_QUEUE_H_
