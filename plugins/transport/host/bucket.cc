#include "plugins/transport/host/bucket.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/abi/netcl_plugin.hpp"

namespace netcl::host_transport {

void check_cl(cl_int code, const char* call) {
  if (code == CL_SUCCESS) return;
  throw plugin::Failure(
      NETCL_E_DEVICE,
      std::string("host transport: ") + call + " failed with OpenCL error " + std::to_string(code),
      code);
}

namespace {

bool holds(const void* memory, uint64_t words, uint32_t pattern) {
  const auto* w = static_cast<const volatile uint32_t*>(memory);
  for (uint64_t i = 0; i < words; ++i) {
    if (w[i] != pattern) return false;
  }
  return true;
}

}  // namespace

// The first look is without a mapping on purpose: an implementation that works on a copy of its own
// would pass with one.
std::string probe_buffer(const ClHandles& cl, cl_mem buffer, void* memory) {
  constexpr uint32_t kDevice = 0x51f0c3a9u, kHost = 0x2b7e1516u;
  constexpr uint64_t kWords = kProbeBytes / 4;
  if (clEnqueueFillBuffer(cl.queue, buffer, &kDevice, 4, 0, kProbeBytes, 0, nullptr, nullptr) !=
          CL_SUCCESS ||
      clFinish(cl.queue) != CL_SUCCESS) {
    return "filling the memory failed";
  }
  if (!holds(memory, kWords, kDevice)) return "what the device writes does not reach the memory";
  cl_int code = CL_SUCCESS;
  void* mapped = clEnqueueMapBuffer(cl.queue, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                    kProbeBytes, 0, nullptr, nullptr, &code);
  if (code != CL_SUCCESS) return "mapping failed";
  const bool in_place = mapped == memory;
  std::fill_n(static_cast<uint32_t*>(memory), kWords, kHost);
  if (clEnqueueUnmapMemObject(cl.queue, buffer, mapped, 0, nullptr, nullptr) != CL_SUCCESS ||
      clFinish(cl.queue) != CL_SUCCESS) {
    return "unmapping failed";
  }
  if (!in_place) return "a mapping lies elsewhere";
  std::vector<uint32_t> back(kWords);
  if (clEnqueueReadBuffer(cl.queue, buffer, CL_TRUE, 0, kProbeBytes, back.data(), 0, nullptr,
                          nullptr) != CL_SUCCESS) {
    return "reading back failed";
  }
  if (!holds(back.data(), kWords, kHost)) return "the device does not see what the host writes";
  return "";
}

std::string probe_zero_copy(const ClHandles& cl, void* memory) {
  cl_int code = CL_SUCCESS;
  cl_mem buffer = clCreateBuffer(cl.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, kProbeBytes,
                                 memory, &code);
  if (code != CL_SUCCESS) return "the driver refuses a buffer over shared memory";
  std::string problem = probe_buffer(cl, buffer, memory);
  clReleaseMemObject(buffer);
  std::memset(memory, 0, kProbeBytes);
  return problem;
}

uint64_t Bucket::rounded(uint64_t bytes) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return (std::max<uint64_t>(bytes, 1) + page - 1) / page * page;
}

uint64_t Bucket::shared_bytes(uint64_t bytes, uint32_t n_ranks) {
  return rounded(bytes) * (bytes <= kSmallBytes ? 3 * n_ranks : n_ranks + 1);
}

Bucket::Bucket(const ClHandles& cl, uint64_t bytes, uint32_t rank, uint32_t n_ranks, bool zero_copy,
               void* memory)
    : cl_(cl),
      bytes_(bytes),
      stride_(rounded(bytes)),
      rank_(rank),
      n_ranks_(n_ranks),
      small_(bytes <= kSmallBytes),
      zero_copy_(zero_copy && !small_),
      base_(static_cast<char*>(memory)) {
  cl_int code = CL_SUCCESS;
  try {
    if (zero_copy_) {
      const cl_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR;
      send_ = clCreateBuffer(cl_.context, flags, stride_, slot(rank_, 0), &code);
      check_cl(code, "clCreateBuffer over the slot");
      recv_ = clCreateBuffer(cl_.context, flags, stride_, result(), &code);
      check_cl(code, "clCreateBuffer over the result");
    } else {
      send_ = clCreateBuffer(cl_.context, CL_MEM_READ_WRITE, stride_, nullptr, &code);
      check_cl(code, "clCreateBuffer of a bucket");
      recv_ = send_;
      pinned_slot_ = pin(slot(rank_, 0), small_ ? 3 * stride_ : stride_);
      if (!small_) pinned_result_ = pin(result(), stride_);
    }
  } catch (...) {
    if (send_ != nullptr) clReleaseMemObject(send_);
    throw;
  }
}

Bucket::~Bucket() {
  unpin(pinned_slot_, slot(rank_, 0));
  unpin(pinned_result_, result());
  if (recv_ != send_ && recv_ != nullptr) clReleaseMemObject(recv_);
  if (send_ != nullptr) clReleaseMemObject(send_);
}

cl_mem Bucket::pin(void* memory, uint64_t bytes) {
  cl_int code = CL_SUCCESS;
  cl_mem buffer =
      clCreateBuffer(cl_.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, memory, &code);
  if (code != CL_SUCCESS) return nullptr;
  // A pending map of the shared result would copy the peers' bytes away on an implementation that
  // does not work in place; the buffer is never used by a command again, so nothing is written.
  void* mapped = clEnqueueMapBuffer(cl_.queue, buffer, CL_TRUE, CL_MAP_READ, 0, bytes, 0, nullptr,
                                    nullptr, &code);
  if (code == CL_SUCCESS && mapped == memory) return buffer;
  if (code == CL_SUCCESS) {
    clEnqueueUnmapMemObject(cl_.queue, buffer, mapped, 0, nullptr, nullptr);
    clFinish(cl_.queue);
  }
  clReleaseMemObject(buffer);
  return nullptr;
}

void Bucket::unpin(cl_mem buffer, void* memory) {
  if (buffer == nullptr) return;
  clEnqueueUnmapMemObject(cl_.queue, buffer, memory, 0, nullptr, nullptr);
  clFinish(cl_.queue);
  clReleaseMemObject(buffer);
}

char* Bucket::slot(uint32_t rank, uint64_t sequence) const {
  return base_ + (small_ ? 3 * rank + sequence % 2 : rank) * stride_;
}

char* Bucket::result() const {
  return base_ + (small_ ? 3 * uint64_t{rank_} + 2 : n_ranks_) * stride_;
}

}  // namespace netcl::host_transport
