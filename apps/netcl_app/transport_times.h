// What a start-up probe measured of two transports, and what follows from it.
#ifndef NETCL_APPS_NETCL_APP_TRANSPORT_TIMES_H_
#define NETCL_APPS_NETCL_APP_TRANSPORT_TIMES_H_

#include <cstdint>
#include <string>

#include "core/base/json_doc.h"

namespace netcl::app {

// One transport adding the same data up over the same devices.
struct TransportTime {
  double us = 0;         // median of an all_reduce, microseconds
  bool correct = false;  // the result was the sum in rank order, bit for bit
  std::string error;     // why there is no time; "": there is one
};

// Staged: for a worker process a device. Shared: for one process with the devices in one OpenCL
// context.
struct TransportTimes {
  std::string staged_name, shared_name;  // the plugins
  uint64_t bytes = 0;                    // of f32 that were added up
  uint32_t n_ranks = 0;
  TransportTime staged, shared;
  // Equal kernels on all devices of the context at once, by the time of the slowest alone: 1 where
  // they run at once, n_ranks where one waits for the other. 0: not measured.
  double kernels_together = 0;
  std::string error;  // why nothing was measured; "": it was
  bool from_cache = false;
};

Json to_json(const TransportTimes& times);
// Errors: an nlohmann exception for a document that is not one of to_json.
TransportTimes transport_times_from_json(const Json& json, const std::string& staged_name,
                                         const std::string& shared_name);

// The faster transport that can carry the group, and why it is that one, with the numbers. The
// shared one only if it is faster by a tenth and leaves the devices to run at once.
struct TransportDecision {
  bool shared = false;
  std::string why;  // "host: an all_reduce of 16 MiB over 2 devices takes it 5.2 ms, p2p 41 ms"
};
TransportDecision decide(const TransportTimes& times);

}  // namespace netcl::app

#endif  // NETCL_APPS_NETCL_APP_TRANSPORT_TIMES_H_
