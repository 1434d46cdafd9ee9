#include "plugins/transport/host/cl_handles.h"

#include <string>

#include "core/abi/netcl_plugin.hpp"

namespace netcl::host_transport {

void check_cl(cl_int code, const char* call) {
  if (code == CL_SUCCESS) return;
  throw plugin::Failure(
      NETCL_E_DEVICE,
      std::string("host transport: ") + call + " failed with OpenCL error " + std::to_string(code),
      code);
}

CopyLane::~CopyLane() {
  for (cl_event e : events_) {
    if (e != nullptr) clReleaseEvent(e);
  }
}

void CopyLane::read(cl_mem from, uint64_t offset, uint64_t bytes, void* to, cl_event after) {
  events_.push_back(nullptr);
  check_cl(clEnqueueReadBuffer(queue_, from, CL_FALSE, offset, bytes, to, after == nullptr ? 0 : 1,
                               after == nullptr ? nullptr : &after, &events_.back()),
           "clEnqueueReadBuffer of the contribution");
  check_cl(clFlush(queue_), "clFlush");
}

void CopyLane::write(cl_mem to, uint64_t offset, uint64_t bytes, const void* from) {
  events_.push_back(nullptr);
  check_cl(
      clEnqueueWriteBuffer(queue_, to, CL_FALSE, offset, bytes, from, 0, nullptr, &events_.back()),
      "clEnqueueWriteBuffer of the result");
  check_cl(clFlush(queue_), "clFlush");
}

bool CopyLane::oldest_done() {
  if (events_.empty()) return false;
  cl_event event = events_.front();
  if (event != nullptr) {
    cl_int status = CL_QUEUED;
    check_cl(
        clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr),
        "clGetEventInfo");
    if (status < 0) check_cl(status, "a copy between device and host");
    if (status != CL_COMPLETE) return false;
    clReleaseEvent(event);
  }
  events_.pop_front();
  return true;
}

void CopyLane::wait_oldest() {
  if (events_.empty() || events_.front() == nullptr) return;
  check_cl(clWaitForEvents(1, &events_.front()), "a copy between device and host");
}

void CopyLane::wait_all() {
  // The queue is in order: with the last copy all are done.
  for (auto e = events_.rbegin(); e != events_.rend(); ++e) {
    if (*e == nullptr) continue;
    check_cl(clWaitForEvents(1, &*e), "a copy between device and host");
    return;
  }
}

}  // namespace netcl::host_transport
