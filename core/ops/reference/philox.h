// Philox 4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011. A pure function of key and counter: the same element gets
// the same number on every device and for every split of the batch.
#ifndef NETCL_CORE_OPS_REFERENCE_PHILOX_H_
#define NETCL_CORE_OPS_REFERENCE_PHILOX_H_

#include <array>
#include <cstdint>

namespace netcl {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

inline PhiloxCounter philox4x32(PhiloxCounter c, PhiloxKey key) {
  constexpr uint64_t kM0 = 0xD2511F53u, kM1 = 0xCD9E8D57u;
  constexpr uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = kM0 * c[0], p1 = kM1 * c[2];
    const auto hi0 = static_cast<uint32_t>(p0 >> 32), lo0 = static_cast<uint32_t>(p0);
    const auto hi1 = static_cast<uint32_t>(p1 >> 32), lo1 = static_cast<uint32_t>(p1);
    c = {hi1 ^ c[1] ^ key[0], lo1, hi0 ^ c[3] ^ key[1], lo0};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return c;
}

// A uniform number in [0, 1) of 24 bits.
inline double philox_uniform(uint32_t word) { return (word >> 8) * (1.0 / 16777216.0); }

}  // namespace netcl

#endif  // NETCL_CORE_OPS_REFERENCE_PHILOX_H_
