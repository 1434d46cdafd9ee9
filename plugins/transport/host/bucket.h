// Memory of one bucket, and the area of a group through which small messages go.
//
// A large bucket has shared memory: a slot of B (its page-rounded size) for each rank, then one
// result of B that the ranks fill together. By the rank's way:
//   zero copy: `send` is a buffer over the slot, `recv` one over the result;
//   copies:    `send` and `recv` are one device buffer; registered copies also keep slot and result
//              registered with the driver and mapped, so that they run at full speed without
//              another bounce; the others' slots, too, where the rank reads them with its device.
// A small bucket is a device buffer alone: what it sends goes through the small area, which has two
// stages, used in turn, and a result for each rank.
// Threads: the group's.
#ifndef NETCL_PLUGINS_TRANSPORT_HOST_BUCKET_H_
#define NETCL_PLUGINS_TRANSPORT_HOST_BUCKET_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "plugins/transport/host/cl_handles.h"
#include "plugins/transport/host/staging_probe.h"

namespace netcl::host_transport {

// Up to this size a rank reduces everything for itself: one wait instead of two.
constexpr uint64_t kSmallBytes = 64 * 1024;

uint64_t page_rounded(uint64_t bytes);

class SmallArea {
 public:
  static uint64_t size_bytes(uint32_t n_ranks) { return 3 * kSmallBytes * n_ranks; }
  // `memory`: size_bytes() that all ranks see.
  SmallArea(const ClHandles& cl, uint32_t rank, bool registered, void* memory);
  SmallArea(const SmallArea&) = delete;
  SmallArea& operator=(const SmallArea&) = delete;
  ~SmallArea();
  char* stage(uint32_t rank, uint64_t sequence) const {
    return base_ + (3 * uint64_t{rank} + sequence % 2) * kSmallBytes;
  }
  // Of this rank alone.
  char* result() const { return base_ + (3 * uint64_t{rank_} + 2) * kSmallBytes; }

 private:
  ClHandles cl_;
  uint32_t rank_;
  char* base_;
  cl_mem registered_ = nullptr;
};

class Bucket {
 public:
  // Shared memory that the bucket needs; 0 for a small one.
  static uint64_t shared_bytes(uint64_t bytes, uint32_t n_ranks);

  // `memory`: shared_bytes() that all ranks see. `reads_slots`: the others', with the device.
  // Throws Failure.
  Bucket(const ClHandles& cl, uint64_t bytes, uint32_t rank, uint32_t n_ranks, Way way,
         bool reads_slots, void* memory);
  Bucket(const Bucket&) = delete;
  Bucket& operator=(const Bucket&) = delete;
  ~Bucket();

  uint64_t bytes() const { return bytes_; }
  bool small() const { return bytes_ <= kSmallBytes; }
  bool zero_copy() const { return way_ == Way::kZeroCopy && !small(); }
  cl_mem send() const { return send_; }
  cl_mem recv() const { return recv_; }
  // Of large buckets only.
  char* slot(uint32_t rank) const { return base_ + rank * stride_; }
  char* result() const { return base_ + n_ranks_ * stride_; }

 private:
  ClHandles cl_;
  uint64_t bytes_, stride_;
  uint32_t rank_, n_ranks_;
  Way way_;
  char* base_;
  cl_mem send_ = nullptr, recv_ = nullptr;
  std::vector<std::pair<cl_mem, char*>> registered_;
};

}  // namespace netcl::host_transport

#endif  // NETCL_PLUGINS_TRANSPORT_HOST_BUCKET_H_
