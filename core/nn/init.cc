#include "core/nn/init.h"

#include <cmath>

#include "core/base/error.h"
#include "core/ops/reference/philox.h"

namespace netcl {

namespace {

constexpr uint32_t kInitStream = 0x696e6974;  // keeps these numbers apart from those of layers
constexpr double kPi = 3.14159265358979323846;

// In [0, 1), 53 bits from two words.
double to_unit(uint32_t high, uint32_t low) {
  return static_cast<double>((static_cast<uint64_t>(high) << 21) ^ (low >> 11)) * 0x1p-53;
}

}  // namespace

std::vector<float> initial_values(const Slot& slot, uint64_t seed, uint32_t slot_index) {
  const auto n = static_cast<size_t>(slot.desc.shape.num_elements());
  switch (slot.init) {
    case NETCL_INIT_ZEROS:
      return std::vector<float>(n, 0.0f);
    case NETCL_INIT_ONES:
      return std::vector<float>(n, 1.0f);
    case NETCL_INIT_CONSTANT:
      return std::vector<float>(n, static_cast<float>(slot.a));
    case NETCL_INIT_UNIFORM:
    case NETCL_INIT_NORMAL:
      break;
    default:
      fail(ErrorCode::kPlugin, "slot ", slot.name, ": unknown initialiser ", slot.init);
  }
  std::vector<float> out(n);
  const std::array<uint32_t, 2> key = {static_cast<uint32_t>(seed),
                                       static_cast<uint32_t>(seed >> 32)};
  for (size_t i = 0; i < n; i += 2) {
    const auto w = philox4x32({static_cast<uint32_t>(i / 2), static_cast<uint32_t>((i / 2) >> 32),
                               slot_index, kInitStream},
                              key);
    const double u = to_unit(w[0], w[1]), v = to_unit(w[2], w[3]);
    double first = 0, second = 0;
    if (slot.init == NETCL_INIT_UNIFORM) {
      first = slot.a + (slot.b - slot.a) * u;
      second = slot.a + (slot.b - slot.a) * v;
    } else {
      const double radius = std::sqrt(-2.0 * std::log(1.0 - u));
      first = slot.a + slot.b * radius * std::cos(2 * kPi * v);
      second = slot.a + slot.b * radius * std::sin(2 * kPi * v);
    }
    out[i] = static_cast<float>(first);
    if (i + 1 < n) out[i + 1] = static_cast<float>(second);
  }
  return out;
}

}  // namespace netcl
