// What a collective means: which elements a rank gives, which it gets, and who owns what.
//
// Threads: plain data.
#ifndef NETCL_PLUGINS_TRANSPORT_HOST_COLLECTIVE_H_
#define NETCL_PLUGINS_TRANSPORT_HOST_COLLECTIVE_H_

#include <CL/cl.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/abi/netcl_plugin.hpp"
#include "plugins/transport/host/shared_state.h"

namespace netcl::host_transport {

class Bucket;

// Elements of a collective.
struct Range {
  uint64_t first = 0, count = 0;
  uint64_t end() const { return first + count; }
  Range cut(Range other) const {
    const uint64_t lo = std::max(first, other.first), hi = std::min(end(), other.end());
    return hi > lo ? Range{lo, hi - lo} : Range{};
  }
};

// A checked copy of a netcl_coll.
struct Collective {
  // Throws Failure(NETCL_E_ARG) saying what is wrong. `c.ready` is not retained.
  Collective(const netcl_coll& c, uint32_t n_ranks);

  uint64_t sequence = 0;
  uint32_t kind = 0, dtype = 0, redop = 0, root = 0;
  uint64_t offset_bytes = 0, count = 0, element_bytes = 0;
  double weight = 1;
  uint32_t flags = 0;  // of NETCL_COLL_*
  Bucket* bucket = nullptr;
  cl_event ready = nullptr;
  std::string name;
  std::vector<uint64_t> counts;  // of every rank, where the kind has parts

  bool has_data() const { return bucket != nullptr && count > 0; }
  uint64_t bytes() const { return count * element_bytes; }
  bool reduces() const { return kind == NETCL_ALL_REDUCE || kind == NETCL_REDUCE_SCATTER; }
  Range part(uint32_t rank) const;
  // What the rank's `send` gives, and what its `recv` gets.
  Range given(uint32_t rank) const;
  Range gotten(uint32_t rank) const;
  // Of a kind that does not reduce: where the elements come from.
  bool from_root() const { return kind == NETCL_BROADCAST || kind == NETCL_SCATTER; }

  // Writes the rank's descriptor and counts into the shared state.
  void announce(SharedState& shared, uint32_t rank, uint32_t n_ranks) const;
};

// Compares the descriptors of collective `sequence`, which every rank has announced.
// Throws Failure(NETCL_E_STATE) with both sides of the first difference.
void compare_descriptors(SharedState& shared, uint32_t n_ranks, uint64_t sequence);

}  // namespace netcl::host_transport

#endif  // NETCL_PLUGINS_TRANSPORT_HOST_COLLECTIVE_H_
