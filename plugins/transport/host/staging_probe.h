// Which way a rank's data takes between its device and the shared memory, found by trying.
//
//   zero copy:  the device works on the shared memory itself (devices that share the host's
//   memory); registered: copies to and from shared memory that the driver has registered (pinned);
//   plain:      copies to and from shared memory that it has not.
// Each way is checked with patterns and timed; the fastest that is right is kept.
// Threads: none of its own.
#ifndef NETCL_PLUGINS_TRANSPORT_HOST_STAGING_PROBE_H_
#define NETCL_PLUGINS_TRANSPORT_HOST_STAGING_PROBE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "plugins/transport/host/cl_handles.h"

namespace netcl::host_transport {

enum class Way { kZeroCopy, kRegistered, kPlain };

constexpr uint64_t kProbeBytes = 2 * 1024 * 1024;

// What a way takes for kProbeBytes; with `problem`, it cannot be used.
struct WayTimes {
  double to_host_s = 0, to_device_s = 0;
  std::string problem;
  double total_s() const { return to_host_s + to_device_s; }
};

struct StagingChoice {
  Way way = Way::kPlain;
  std::string text;  // one line: each way with its figures or its problem, and the choice
};

// Tries the ways on `memory`: kProbeBytes, page-aligned, of the shared memory, which are left with
// any content. `unified`: the device says that it shares the host's memory. `wanted`: only this way
// is tried, and untimed; if it is not right, plain copies remain.
// Throws Failure(NETCL_E_DEVICE) if no way works.
StagingChoice choose_staging(const ClHandles& cl, bool unified, std::optional<Way> wanted,
                             void* memory);

// Returns "" if a buffer over `memory` (kProbeBytes) is the memory itself in both directions, else
// what went wrong.
std::string probe_buffer(const ClHandles& cl, cl_mem buffer, void* memory);

// Registers memory with the driver and maps it for good. Returns nullptr where the driver refuses
// or maps elsewhere.
cl_mem register_memory(const ClHandles& cl, void* memory, uint64_t bytes);
void unregister_memory(const ClHandles& cl, cl_mem buffer, void* memory);

}  // namespace netcl::host_transport

#endif  // NETCL_PLUGINS_TRANSPORT_HOST_STAGING_PROBE_H_
