#include "plugins/transport/host/collective.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <numeric>

#include "core/abi/netcl_names.hpp"
#include "plugins/transport/host/bucket.h"
#include "plugins/transport/host/reduce.h"

namespace netcl::host_transport {

using plugin::Failure;

namespace {

constexpr uint32_t kShownParts = 16;

bool kind_has_parts(uint32_t kind) {
  return kind == NETCL_REDUCE_SCATTER || kind == NETCL_ALL_GATHER || kind == NETCL_SCATTER ||
         kind == NETCL_GATHER;
}
bool kind_has_root(uint32_t kind) {
  return kind == NETCL_BROADCAST || kind == NETCL_SCATTER || kind == NETCL_GATHER;
}
bool kind_reduces(uint32_t kind) {
  return kind == NETCL_ALL_REDUCE || kind == NETCL_REDUCE_SCATTER;
}

std::string dtype_name(uint32_t dtype) {
  static constexpr const char* kNames[] = {"none", "f32", "f16", "bf16",
                                           "i32",  "i64", "u8",  "bool"};
  return dtype <= NETCL_BOOL ? kNames[dtype] : "dtype " + std::to_string(dtype);
}

std::string redop_name(uint32_t redop) {
  static constexpr const char* kNames[] = {"none", "sum", "max", "min", "prod", "mean"};
  return redop <= NETCL_MEAN ? kNames[redop] : "op " + std::to_string(redop);
}

bool same(const Descriptor& a, const Descriptor& b) {
  return a.sequence == b.sequence && a.bucket_bytes == b.bucket_bytes &&
         a.offset_bytes == b.offset_bytes && a.count == b.count && a.kind == b.kind &&
         a.dtype == b.dtype && a.redop == b.redop && a.root == b.root && a.flags == b.flags &&
         std::strncmp(a.name, b.name, sizeof(a.name)) == 0;
}

std::string parts_text(const uint64_t* counts, uint32_t n_ranks) {
  std::string text = ", parts ";
  for (uint32_t r = 0; r < std::min(n_ranks, kShownParts); ++r) {
    text += (r == 0 ? "" : "+") + std::to_string(counts[r]);
  }
  return text + (n_ranks > kShownParts ? "+..." : "");
}

std::string describe(SharedState& shared, uint32_t n_ranks, uint32_t rank, uint64_t sequence) {
  const Descriptor& d = shared.rank(rank)->descriptor[sequence % 2];
  std::string text = "rank " + std::to_string(rank) + " posts " + plugin::collective_name(d.kind) +
                     " \"" + d.name + "\" (number " + std::to_string(d.sequence);
  if (kind_reduces(d.kind)) text += ", " + redop_name(d.redop);
  if (kind_has_root(d.kind)) text += ", root " + std::to_string(d.root);
  if (d.kind != NETCL_BARRIER) {
    text += ", " + dtype_name(d.dtype) + ", " + std::to_string(d.count) + " elements at byte " +
            std::to_string(d.offset_bytes) + " of " + std::to_string(d.bucket_bytes);
  }
  if (kind_has_parts(d.kind)) {
    text += parts_text(shared.counts(rank, n_ranks, sequence), n_ranks);
  }
  if ((d.flags & NETCL_COLL_OVERLAPPED) != 0) text += ", overlapped";
  return text + ")";
}

[[noreturn]] void refuse(const netcl_coll& c, const std::string& why) {
  throw Failure(NETCL_E_ARG,
                "host transport: collective \"" + std::string(plugin::view(c.name)) + "\": " + why);
}

void check_reduction(const netcl_coll& c, double weight) {
  if (!can_reduce(c.dtype, c.redop)) {
    refuse(c, "reduces f32, f16, bf16, i32, i64 and u8 by sum, max, min, prod and mean, not " +
                  dtype_name(c.dtype) + " by " + redop_name(c.redop));
  }
  if (c.redop != NETCL_MEAN) return;
  const bool is_float = c.dtype == NETCL_F32 || c.dtype == NETCL_F16 || c.dtype == NETCL_BF16;
  if (!is_float && weight != 1) refuse(c, "the mean of integers has no weights but 1");
  if (!std::isfinite(static_cast<float>(weight)) || weight < 0) {
    refuse(c, "the weight " + std::to_string(weight) + " is no finite number of at least 0");
  }
}

}  // namespace

Collective::Collective(const netcl_coll& c, uint32_t n_ranks)
    : kind(c.kind), ready(static_cast<cl_event>(c.ready)), name(plugin::view(c.name)) {
  if (c.size >= offsetof(netcl_coll, flags) + sizeof(c.flags)) flags = c.flags;
  if (kind == NETCL_BARRIER) return;
  if (!kind_reduces(kind) && !kind_has_parts(kind) && !kind_has_root(kind)) {
    refuse(c, "kind " + std::to_string(kind) + " is not known");
  }
  dtype = c.dtype;
  offset_bytes = c.offset_bytes;
  count = c.count;
  element_bytes = host_transport::element_bytes(dtype);
  if (element_bytes == 0) refuse(c, "dtype " + std::to_string(dtype) + " is not known");
  if (kind_reduces(kind)) {
    redop = c.redop;
    if (redop == NETCL_MEAN) weight = c.weight;
    check_reduction(c, weight);
  }
  if (kind_has_root(kind)) {
    root = c.root;
    if (root >= n_ranks) {
      refuse(c, "root " + std::to_string(root) + " of " + std::to_string(n_ranks) + " ranks");
    }
  }
  if (kind_has_parts(kind)) {
    counts.assign(n_ranks, count / n_ranks);
    for (uint64_t r = 0; r < count % n_ranks; ++r) ++counts[r];
    if (c.counts != nullptr) counts.assign(c.counts, c.counts + n_ranks);
    uint64_t rest = count;  // subtracted, because a sum could wrap
    for (const uint64_t part : counts) {
      if (part > rest) refuse(c, "the ranks' parts have more than " + std::to_string(count));
      rest -= part;
    }
    if (rest != 0) {
      refuse(c, "the ranks' parts have " + std::to_string(count - rest) + " elements, not " +
                    std::to_string(count));
    }
  }
  if (c.bucket == nullptr || c.bucket->handle == nullptr) refuse(c, "has no bucket");
  bucket = static_cast<Bucket*>(c.bucket->handle);
  const uint64_t size = bucket->bytes();
  if (offset_bytes % element_bytes != 0 || offset_bytes > size ||
      count > (size - offset_bytes) / element_bytes) {
    refuse(c, std::to_string(count) + " elements of " + std::to_string(element_bytes) +
                  " bytes at byte " + std::to_string(offset_bytes) + " do not lie in a bucket of " +
                  std::to_string(size));
  }
}

Range Collective::part(uint32_t rank) const {
  const auto begin = counts.begin();
  return {std::accumulate(begin, begin + rank, uint64_t{0}), counts[rank]};
}

Range Collective::given(uint32_t rank) const {
  if (reduces() || (from_root() && rank == root)) return {0, count};
  return kind == NETCL_ALL_GATHER || kind == NETCL_GATHER ? part(rank) : Range{};
}

Range Collective::gotten(uint32_t rank) const {
  if (kind == NETCL_REDUCE_SCATTER || kind == NETCL_SCATTER) return part(rank);
  if (kind == NETCL_GATHER) return rank == root ? Range{0, count} : Range{};
  return {0, count};
}

void Collective::announce(SharedState& shared, uint32_t rank, uint32_t n_ranks) const {
  Descriptor d{};
  d.sequence = sequence;
  d.bucket_bytes = bucket == nullptr ? 0 : bucket->bytes();
  d.offset_bytes = offset_bytes;
  d.count = count;
  d.kind = kind;
  d.dtype = dtype;
  d.redop = redop;
  d.root = root;
  d.flags = flags;
  d.weight = weight;
  std::memcpy(d.name, name.data(), std::min(name.size(), sizeof(d.name) - 1));
  shared.rank(rank)->descriptor[sequence % 2] = d;
  uint64_t* const shared_counts = shared.counts(rank, n_ranks, sequence);
  for (uint32_t r = 0; r < n_ranks; ++r) shared_counts[r] = counts.empty() ? 0 : counts[r];
}

void compare_descriptors(SharedState& shared, uint32_t n_ranks, uint64_t sequence) {
  const Descriptor& first = shared.rank(0)->descriptor[sequence % 2];
  const uint64_t* const counts = shared.counts(0, n_ranks, sequence);
  for (uint32_t r = 1; r < n_ranks; ++r) {
    if (same(first, shared.rank(r)->descriptor[sequence % 2]) &&
        std::equal(counts, counts + n_ranks, shared.counts(r, n_ranks, sequence))) {
      continue;
    }
    throw Failure(
        NETCL_E_STATE,
        "host transport: the ranks' collectives differ: " + describe(shared, n_ranks, 0, sequence) +
            " but " + describe(shared, n_ranks, r, sequence) +
            "; all ranks must post the same collectives in the same order");
  }
}

}  // namespace netcl::host_transport
