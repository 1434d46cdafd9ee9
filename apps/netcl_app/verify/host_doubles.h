// Tables of host services that are not as the host's own: older, newer, or with one service that
// fails. They live as long as the process, as plugins keep them.
// Threads: any; calls of failing services are counted over all threads.
#ifndef NETCL_APPS_NETCL_APP_VERIFY_HOST_DOUBLES_H_
#define NETCL_APPS_NETCL_APP_VERIFY_HOST_DOUBLES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "core/abi/netcl_plugin.h"

namespace netcl::app::verify {

// A table that ends after `size` bytes; reading beyond them ends the process (signal 11).
const netcl_host& cut_host(size_t size, uint32_t abi_minor);

// A table of a later minor version, with more services than this one knows.
const netcl_host& newer_host();

// The size of the table in boundary 0.1.
size_t first_host_size();

struct FailingService {
  std::string name;  // "device_int"
  const netcl_host* host;
  // The plugin may go on without what it asked for: a fact of the device has a fall-back.
  bool may_be_borne;
};

// A table for each service, which fails there, with NETCL_E_DEVICE and words.
const std::vector<FailingService>& failing_hosts();

// Calls of failing services since the last reset.
size_t failing_calls();
void reset_failing_calls();

}  // namespace netcl::app::verify

#endif  // NETCL_APPS_NETCL_APP_VERIFY_HOST_DOUBLES_H_
