#include "plugins/transport/host/device_reducer.h"

#include "core/abi/netcl_plugin.h"

namespace netcl::host_transport {

DeviceReducer::DeviceReducer(const ClHandles& cl, const std::string& directory, uint32_t rank,
                             uint32_t n_ranks, uint64_t chunk_bytes, uint64_t most_ahead)
    : cl_(cl),
      rank_(rank),
      n_ranks_(n_ranks),
      chunk_bytes_(chunk_bytes),
      most_ahead_(most_ahead),
      kernels_(cl.context, cl.device, directory, n_ranks),
      scratch_(n_ranks, nullptr) {
  cl_int code = CL_SUCCESS;
  queue_ = clCreateCommandQueue(cl_.context, cl_.device, 0, &code);
  check_cl(code, "clCreateCommandQueue");
}

DeviceReducer::~DeviceReducer() {
  clFinish(cl_.out);
  clFinish(queue_);
  for (cl_mem mem : scratch_) {
    if (mem != nullptr) clReleaseMemObject(mem);
  }
  clReleaseCommandQueue(queue_);
}

bool DeviceReducer::can_reduce(uint32_t dtype, uint32_t redop) const {
  return dtype == NETCL_F32 && (redop == NETCL_SUM || redop == NETCL_MEAN) &&
         kernels_.is_exact(dtype, redop);
}

cl_event DeviceReducer::reduce(uint64_t index, const Part& part) {
  const uint64_t at = index % most_ahead_ * chunk_bytes_;
  std::vector<transport::ReduceInput> inputs;
  cl_event copied = nullptr;  // the last copy; the queue is in order
  for (uint32_t r = 0; r < n_ranks_; ++r) {
    const double weight = part.weights == nullptr ? 1 : part.weights[r];
    if (r == rank_) {
      inputs.push_back({part.bucket, part.offset_bytes / part.element_bytes, weight});
      continue;
    }
    if (scratch_[r] == nullptr) {
      cl_int code = CL_SUCCESS;
      scratch_[r] = clCreateBuffer(cl_.context, CL_MEM_READ_WRITE, most_ahead_ * chunk_bytes_,
                                   nullptr, &code);
      check_cl(code, "clCreateBuffer of the peers' chunks");
    }
    inputs.push_back({scratch_[r], at / part.element_bytes, weight});
    if (copied != nullptr) clReleaseEvent(copied);
    copied = nullptr;
    check_cl(
        clEnqueueWriteBuffer(cl_.out, scratch_[r], CL_FALSE, at, part.count * part.element_bytes,
                             part.peers[r], 0, nullptr, &copied),
        "clEnqueueWriteBuffer of a peer's contribution");
  }
  check_cl(clFlush(cl_.out), "clFlush");
  std::vector<cl_event> after;
  if (copied != nullptr) after.push_back(copied);
  struct Release {
    cl_event event;
    ~Release() {
      if (event != nullptr) clReleaseEvent(event);
    }
  } release{copied};
  const cl_event done = kernels_.enqueue(queue_, part.dtype, part.redop, inputs, part.bucket,
                                         part.offset_bytes / part.element_bytes, part.count, after);
  check_cl(clFlush(queue_), "clFlush");
  return done;
}

}  // namespace netcl::host_transport
