// Names of the boundary's numbers, for messages.
#ifndef NETCL_CORE_ABI_NETCL_NAMES_HPP_
#define NETCL_CORE_ABI_NETCL_NAMES_HPP_

#include "netcl_plugin.h"

#pragma GCC visibility push(hidden)
namespace netcl {
namespace plugin {

// "all_reduce" for NETCL_ALL_REDUCE; "unknown collective" for a number that is none.
inline const char* collective_name(uint32_t kind) {
  switch (kind) {
    case NETCL_ALL_REDUCE:
      return "all_reduce";
    case NETCL_BROADCAST:
      return "broadcast";
    case NETCL_BARRIER:
      return "barrier";
    case NETCL_REDUCE_SCATTER:
      return "reduce_scatter";
    case NETCL_ALL_GATHER:
      return "all_gather";
    case NETCL_SCATTER:
      return "scatter";
    case NETCL_GATHER:
      return "gather";
    default:
      return "unknown collective";
  }
}

}  // namespace plugin
}  // namespace netcl
#pragma GCC visibility pop

#endif  // NETCL_CORE_ABI_NETCL_NAMES_HPP_
