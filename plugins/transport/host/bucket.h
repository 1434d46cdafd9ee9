// Memory of one bucket: the shared slots and result, and the rank's OpenCL buffers over or beside
// them.
//
// Layout of the shared memory, with B the page-rounded size:
//   large bucket: a slot of B for each rank, then one result of B that the ranks fill by slices;
//   small bucket: for each rank two stages of B, used in turn, and a result of B of its own.
// Ways to move the data:
//   zero copy (large buckets on devices that share the host's memory, if probe_zero_copy holds):
//     `send` is a buffer over the slot, `recv` one over the result;
//   staging: `send` and `recv` are one device buffer; slot and result are registered with the
//     driver and kept mapped, so that copies run at full speed without another bounce.
// Threads: the group's.
#ifndef NETCL_PLUGINS_TRANSPORT_HOST_BUCKET_H_
#define NETCL_PLUGINS_TRANSPORT_HOST_BUCKET_H_

#include <CL/cl.h>

#include <cstdint>
#include <string>

namespace netcl::host_transport {

// Up to this size a rank reduces everything for itself: one wait instead of two.
constexpr uint64_t kSmallBytes = 64 * 1024;

struct ClHandles {
  cl_context context = nullptr;
  cl_device_id device = nullptr;
  cl_command_queue queue = nullptr;  // in order, of this group alone
};

// Throws Failure(NETCL_E_DEVICE) naming the call unless `code` is CL_SUCCESS.
void check_cl(cl_int code, const char* call);

// Returns "" if kernels and copies on the device reach `memory` (64 KiB, page-aligned) directly,
// else what went wrong. Leaves the memory zero.
std::string probe_zero_copy(const ClHandles& cl, void* memory);
// The probe's steps on an existing buffer of kProbeBytes, which should lie over `memory`.
std::string probe_buffer(const ClHandles& cl, cl_mem buffer, void* memory);
constexpr uint64_t kProbeBytes = 64 * 1024;

class Bucket {
 public:
  static uint64_t rounded(uint64_t bytes);
  // Shared memory that the bucket needs.
  static uint64_t shared_bytes(uint64_t bytes, uint32_t n_ranks);

  // `memory`: shared_bytes() that all ranks see. Throws Failure.
  Bucket(const ClHandles& cl, uint64_t bytes, uint32_t rank, uint32_t n_ranks, bool zero_copy,
         void* memory);
  Bucket(const Bucket&) = delete;
  Bucket& operator=(const Bucket&) = delete;
  ~Bucket();

  uint64_t bytes() const { return bytes_; }
  bool small() const { return small_; }
  bool zero_copy() const { return zero_copy_; }
  cl_mem send() const { return send_; }
  cl_mem recv() const { return recv_; }
  char* slot(uint32_t rank, uint64_t sequence) const;
  char* result() const;

 private:
  // Registers memory with the driver and maps it for good; a refusal only costs speed.
  cl_mem pin(void* memory, uint64_t bytes);
  void unpin(cl_mem buffer, void* memory);

  ClHandles cl_;
  uint64_t bytes_, stride_;
  uint32_t rank_, n_ranks_;
  bool small_, zero_copy_;
  char* base_;
  cl_mem send_ = nullptr, recv_ = nullptr, pinned_slot_ = nullptr, pinned_result_ = nullptr;
};

}  // namespace netcl::host_transport

#endif  // NETCL_PLUGINS_TRANSPORT_HOST_BUCKET_H_
