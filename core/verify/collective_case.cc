#include "core/verify/collective_case.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <sstream>

#include "core/verify/collective_oracle.h"

namespace netcl {

namespace {

// Bytes before and behind the collective's range that are compared.
constexpr uint64_t kMargin = 64;

// Values that arithmetic trips over: not-a-numbers, infinities, zeros, the least and the greatest.
constexpr uint32_t kSpecial[] = {0x7fc00000u, 0xff800000u, 0x7f800000u, 0x80000000u, 0x00000000u,
                                 0x00000001u, 0x807fffffu, 0x7f7fffffu, 0xffc12345u, 0x7fa00001u};
constexpr uint16_t kSpecial16[2][8] = {
    {0x7e00, 0xfc00, 0x7c00, 0x8000, 0x0001, 0x83ff, 0x7bff, 0x7d01},   // f16
    {0x7fc0, 0xff80, 0x7f80, 0x8000, 0x0001, 0x807f, 0x7f7f, 0x7f81}};  // bf16

// Elements [lo, hi) of the case that the rank must have.
std::pair<uint64_t, uint64_t> range_of(const CollectiveCase& c, uint32_t rank, uint32_t n) {
  if (c.kind == NETCL_GATHER && rank != c.root(n)) return {0, 0};
  if (c.kind != NETCL_REDUCE_SCATTER && c.kind != NETCL_SCATTER) return {0, c.count};
  const std::vector<uint64_t> parts = c.parts(n);
  const uint64_t lo = std::accumulate(parts.begin(), parts.begin() + rank, uint64_t{0});
  return {lo, lo + parts[rank]};
}

std::string first_wrong_element(const CollectiveCase& c, uint32_t rank, uint32_t n, const char* got,
                                const char* want) {
  const uint64_t size = size_of_dtype(c.dtype);
  const auto [lo, hi] = range_of(c, rank, n);
  for (uint64_t i = lo; i < hi; ++i) {
    uint64_t g = 0, w = 0;
    std::memcpy(&g, got + i * size, size);
    std::memcpy(&w, want + i * size, size);
    if (g == w) continue;
    std::ostringstream out;
    out << c.text() << ", rank " << rank << " of " << n << ", element " << i << ": got 0x"
        << std::hex << g << ", want 0x" << w;
    return out.str();
  }
  return "";
}

}  // namespace

uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::string CollectiveCase::text() const {
  return str_cat("kind ", kind, " dtype ", dtype, " op ", op, " count ", count, " offset ", offset,
                 " seed ", seed);
}

std::vector<uint64_t> CollectiveCase::parts(uint32_t n) const {
  if (seed % 2 == 0) return even_parts(count, n);
  std::vector<uint64_t> out(n);
  uint64_t rest = count;
  for (uint32_t r = 0; r + 1 < n; ++r) {
    out[r] = mixed(seed + r) % 3 == 0 ? 0 : mixed(seed * 31 + r) % (rest + 1);
    rest -= out[r];
  }
  out[n - 1] = rest;
  return out;
}

double CollectiveCase::weight(uint32_t rank) const {
  if (op != NETCL_MEAN || !is_float_dtype(dtype) || seed % 3 == 0) return 1;
  return (seed + rank) % 3 == 0 ? 0 : 0.3 * (rank + 1);
}

uint64_t CollectiveCase::element(uint32_t rank, uint64_t i) const {
  const uint64_t word = mixed(seed * 0x10001 + rank + i * 0x100000001u);
  if (!is_float_dtype(dtype)) return word >> (64 - 8 * size_of_dtype(dtype));
  const bool special = (word >> 40) % 13 == 5, nan = reduces() && weight(rank) == 0;
  if (dtype == NETCL_F32) {
    if (nan) return 0xffc00001u;
    if (special) return kSpecial[(word >> 8) % 10];
    return (word & 0x807fffffu) | ((0x70u + (word >> 32) % 24) << 23);
  }
  const int half = dtype == NETCL_F16 ? 0 : 1;
  if (nan) return kSpecial16[half][7];
  if (special) return kSpecial16[half][(word >> 8) % 8];
  if (half == 0) return (word & 0x83ffu) | ((0x08u + (word >> 32) % 14) << 10);
  return (word & 0x807fu) | ((0x70u + (word >> 32) % 24) << 7);
}

std::vector<char> CollectiveCase::contribution(uint32_t rank) const {
  const uint64_t size = size_of_dtype(dtype);
  std::vector<char> out(count * size);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t bits = element(rank, i);
    std::memcpy(out.data() + i * size, &bits, size);
  }
  return out;
}

std::vector<char> CollectiveCase::result(uint32_t n) const {
  const uint64_t size = size_of_dtype(dtype);
  std::vector<char> out(count * size);
  const std::vector<uint64_t> part = parts(n);
  std::vector<double> weights(n);
  for (uint32_t r = 0; r < n; ++r) weights[r] = weight(r);
  std::vector<uint64_t> in(n);
  uint64_t owner = 0, end = part[0];
  for (uint64_t i = 0; i < count; ++i) {
    while (i >= end) end += part[++owner];
    uint64_t bits = 0;
    if (reduces()) {
      for (uint32_t r = 0; r < n; ++r) in[r] = element(r, i);
      bits = reduce_element(dtype, op, in, weights);
    } else {
      const bool gathers = kind == NETCL_ALL_GATHER || kind == NETCL_GATHER;
      bits = element(gathers ? static_cast<uint32_t>(owner) : root(n), i);
    }
    std::memcpy(out.data() + i * size, &bits, size);
  }
  return out;
}

std::vector<CollectiveCase> collective_combinations() {
  std::vector<CollectiveCase> out;
  for (const uint32_t dtype : {NETCL_F32, NETCL_F16, NETCL_BF16, NETCL_I32, NETCL_I64, NETCL_U8}) {
    for (const uint32_t kind : {NETCL_ALL_REDUCE, NETCL_REDUCE_SCATTER}) {
      for (const uint32_t op : {NETCL_SUM, NETCL_MAX, NETCL_MIN, NETCL_PROD, NETCL_MEAN}) {
        out.push_back({kind, dtype, op});
      }
    }
    for (const uint32_t kind : {NETCL_BROADCAST, NETCL_ALL_GATHER, NETCL_SCATTER, NETCL_GATHER}) {
      out.push_back({kind, dtype, 0});
    }
  }
  return out;
}

std::vector<CollectiveCase> collective_matrix(uint32_t n_ranks,
                                              const std::vector<uint64_t>& counts) {
  const uint64_t every = n_ranks == 3 ? 1 : 5;
  std::vector<CollectiveCase> out;
  uint64_t seed = 0;
  for (CollectiveCase c : collective_combinations()) {
    for (const uint64_t count : counts) {
      c.seed = ++seed;
      if (mixed(c.seed + n_ranks) % every != 0) continue;
      c.count = count;
      c.offset = mixed(c.seed) % 3 * 17;
      out.push_back(c);
    }
  }
  return out;
}

std::vector<char> ExpectedResults::of(const CollectiveCase& c, uint32_t n) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [it, is_new] = results_.try_emplace(c.seed);
  if (is_new) it->second = c.result(n);
  std::vector<char> out = it->second;
  // Ranks are at most one case apart: the ones before are not needed any more.
  while (results_.begin()->first + 4 < c.seed) results_.erase(results_.begin());
  return out;
}

void spin(uint64_t rounds) {
  volatile uint64_t x = rounds;
  for (uint64_t i = 0; i < rounds; ++i) x = x * 1664525u + 1013904223u;
}

std::string check_collective(TransportRank& rank, const netcl_bucket& bucket,
                             const CollectiveCase& c, ExpectedResults& expected) {
  const uint64_t size = size_of_dtype(c.dtype), bytes = c.count * size, at = c.offset * size;
  const uint64_t before = std::min(at, kMargin),
                 behind = std::min(bucket.bytes - at - bytes, kMargin);
  const uint32_t n = rank.n_ranks();
  std::vector<char> margins(before + behind), got(before + bytes + behind);
  const std::vector<char> mine = c.contribution(rank.rank());
  cl_event ready = rank.write(bucket, at, mine.data(), bytes);
  rank.read(bucket, at - before, margins.data(), before);
  rank.read(bucket, at + bytes, margins.data() + before, behind);
  netcl_coll coll = TransportRank::all_reduce(bucket, at, c.count, c.dtype, c.reduces() ? c.op : 0);
  const std::vector<uint64_t> parts = c.parts(n);
  coll.kind = c.kind;
  coll.root = c.root(n);
  coll.counts = c.has_parts() && c.seed % 2 != 0 ? parts.data() : nullptr;
  coll.weight = c.weight(rank.rank());
  if (c.seed % 5 == 0) coll.flags = NETCL_COLL_OVERLAPPED;  // changes no bit
  coll.ready = ready;
  spin(mixed(c.seed * 131 + rank.rank()) % 20'000);  // ranks come in any order
  rank.wait(rank.post(coll));
  if (ready != nullptr) clReleaseEvent(ready);
  rank.read(bucket, at - before, got.data(), got.size());
  if (!std::equal(margins.begin(), margins.begin() + static_cast<long>(before), got.begin()))
    return c.text() + ": changed what lies before";
  if (!std::equal(margins.begin() + static_cast<long>(before), margins.end(),
                  got.end() - static_cast<long>(behind)))
    return c.text() + ": changed what lies behind";
  return first_wrong_element(c, rank.rank(), n, got.data() + before, expected.of(c, n).data());
}

}  // namespace netcl
