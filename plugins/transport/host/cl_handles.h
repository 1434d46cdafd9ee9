// The OpenCL objects of one rank, and copies in flight.
#ifndef NETCL_PLUGINS_TRANSPORT_HOST_CL_HANDLES_H_
#define NETCL_PLUGINS_TRANSPORT_HOST_CL_HANDLES_H_

#include <CL/cl.h>

#include <cstddef>
#include <cstdint>
#include <deque>

namespace netcl::host_transport {

// Both queues are in order and of this group alone; two, because a device has an engine for each
// direction and a queue feeds one at a time.
struct ClHandles {
  cl_context context = nullptr;
  cl_device_id device = nullptr;
  cl_command_queue queue = nullptr;  // maps, and copies to the host
  cl_command_queue out = nullptr;    // copies to the device
};

// Throws Failure(NETCL_E_DEVICE) naming the call unless `code` is CL_SUCCESS.
void check_cl(cl_int code, const char* call);

// Copies of one direction, oldest first. Threads: one at a time.
class CopyLane {
 public:
  explicit CopyLane(cl_command_queue queue) : queue_(queue) {}
  CopyLane(const CopyLane&) = delete;
  CopyLane& operator=(const CopyLane&) = delete;
  // Lets go of the copies; it does not wait for them.
  ~CopyLane();

  // Copies start in order, and not before `after` (or nullptr). Both throw Failure.
  void read(cl_mem from, uint64_t offset, uint64_t bytes, void* to, cl_event after);
  void write(cl_mem to, uint64_t offset, uint64_t bytes, const void* from);
  // Takes over an event of this direction's work, in the order.
  void add(cl_event event) { events_.push_back(event); }
  // Takes a place in the order; complete as soon as it is the oldest.
  void nothing() { events_.push_back(nullptr); }

  size_t in_flight() const { return events_.size(); }
  // True if the oldest copy is complete, which is then forgotten. Throws Failure if it failed.
  bool oldest_done();
  // Waits for the oldest copy, or for all; they stay in the lane.
  void wait_oldest();
  void wait_all();

 private:
  cl_command_queue queue_;
  std::deque<cl_event> events_;
};

}  // namespace netcl::host_transport

#endif  // NETCL_PLUGINS_TRANSPORT_HOST_CL_HANDLES_H_
