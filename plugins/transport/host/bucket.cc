#include "plugins/transport/host/bucket.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace netcl::host_transport {

uint64_t page_rounded(uint64_t bytes) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return (std::max<uint64_t>(bytes, 1) + page - 1) / page * page;
}

SmallArea::SmallArea(const ClHandles& cl, uint32_t rank, bool registered, void* memory)
    : cl_(cl), rank_(rank), base_(static_cast<char*>(memory)) {
  if (registered) registered_ = register_memory(cl_, stage(rank_, 0), 3 * kSmallBytes);
}

SmallArea::~SmallArea() { unregister_memory(cl_, registered_, stage(rank_, 0)); }

uint64_t Bucket::shared_bytes(uint64_t bytes, uint32_t n_ranks) {
  return bytes <= kSmallBytes ? 0 : page_rounded(bytes) * (n_ranks + 1);
}

Bucket::Bucket(const ClHandles& cl, uint64_t bytes, uint32_t rank, uint32_t n_ranks, Way way,
               bool reads_slots, void* memory)
    : cl_(cl),
      bytes_(bytes),
      stride_(page_rounded(bytes)),
      rank_(rank),
      n_ranks_(n_ranks),
      way_(way),
      base_(static_cast<char*>(memory)) {
#if defined(MADV_POPULATE_WRITE)
  // The first use would else pay for every page. Older systems refuse, and pay then.
  if (!small()) madvise(base_, shared_bytes(bytes, n_ranks), MADV_POPULATE_WRITE);
#endif
  cl_int code = CL_SUCCESS;
  try {
    if (zero_copy()) {
      const cl_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR;
      send_ = clCreateBuffer(cl_.context, flags, stride_, slot(rank_), &code);
      check_cl(code, "clCreateBuffer over the slot");
      recv_ = clCreateBuffer(cl_.context, flags, stride_, result(), &code);
      check_cl(code, "clCreateBuffer over the result");
    } else {
      send_ = clCreateBuffer(cl_.context, CL_MEM_READ_WRITE, stride_, nullptr, &code);
      check_cl(code, "clCreateBuffer of a bucket");
      recv_ = send_;
      if (way_ == Way::kRegistered && !small()) {
        const auto keep = [&](char* at, uint64_t size) {
          registered_.emplace_back(register_memory(cl_, at, size), at);
        };
        if (reads_slots) {
          keep(base_, shared_bytes(bytes, n_ranks));
        } else {
          keep(slot(rank_), stride_);
          keep(result(), stride_);
        }
      }
    }
  } catch (...) {
    if (send_ != nullptr) clReleaseMemObject(send_);
    throw;
  }
}

Bucket::~Bucket() {
  for (const auto& [mem, at] : registered_) unregister_memory(cl_, mem, at);
  if (recv_ != send_ && recv_ != nullptr) clReleaseMemObject(recv_);
  if (send_ != nullptr) clReleaseMemObject(send_);
}

}  // namespace netcl::host_transport
