// One rank's end of a transport group, for checks: every call of the transport's table by itself,
// with its status as an exception that keeps the code.
//
// Ownership: what `access` and `spec` point to outlives it. Threads: abort: any; the rest: one.
#ifndef NETCL_CORE_VERIFY_TRANSPORT_RANK_H_
#define NETCL_CORE_VERIFY_TRANSPORT_RANK_H_

#include <cstdint>
#include <exception>
#include <functional>
#include <string>

#include "core/cl/opencl.h"
#include "core/collective/communicator.h"

namespace netcl {

// A status of the transport that is not NETCL_OK.
struct TransportStatus : std::exception {
  TransportStatus(netcl_rc c, std::string t) : code(c), text(std::move(t)) {}
  const char* what() const noexcept override { return text.c_str(); }
  netcl_rc code;
  std::string text;
};

// Status and text of what `body` throws; NETCL_OK if it throws none.
TransportStatus status_of(const std::function<void()>& body);

class TransportRank {
 public:
  // Opens the group. Collective. Errors of all calls: TransportStatus.
  TransportRank(TransportAccess access, const netcl_group_spec& spec, cl::CommandQueue queue);
  TransportRank(const TransportRank&) = delete;
  TransportRank& operator=(const TransportRank&) = delete;
  ~TransportRank();

  uint32_t rank() const { return rank_; }
  uint32_t n_ranks() const { return n_ranks_; }
  const netcl_transport_api& api() const { return *access_.api; }
  netcl_plugin* self() const { return access_.self; }
  void* group() const { return group_; }

  netcl_bucket bucket(uint64_t bytes);
  void free(netcl_bucket& bucket);
  uint64_t post(const netcl_coll& collective);
  void wait(uint64_t ticket);
  void abort(const std::string& reason);

  static netcl_coll all_reduce(const netcl_bucket& bucket, uint64_t offset_bytes, uint64_t count,
                               uint32_t dtype, uint32_t op, const char* name = "test");
  static netcl_coll barrier(const char* name = "barrier");

  // Starts writing into `send`; returns the event after which the data lies there (null for no
  // bytes), which the caller releases.
  cl_event write(const netcl_bucket& bucket, uint64_t offset, const void* data, uint64_t bytes);
  // Reads from `recv`.
  void read(const netcl_bucket& bucket, uint64_t offset, void* data, uint64_t bytes);

 private:
  void call(const std::function<netcl_rc(netcl_call*)>& body) const;

  TransportAccess access_;
  uint32_t rank_, n_ranks_;
  cl::CommandQueue queue_;
  void* group_ = nullptr;
};

}  // namespace netcl

#endif  // NETCL_CORE_VERIFY_TRANSPORT_RANK_H_
