#include "core/nn/init.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

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

// Two independent numbers in [0, 1) for every pair of elements; `round` gives further ones.
std::pair<double, double> draw(const PhiloxKey& key, size_t pair, uint32_t slot_index,
                               uint32_t round) {
  const auto w = philox4x32({static_cast<uint32_t>(pair), static_cast<uint32_t>(pair >> 32),
                             slot_index, kInitStream + round},
                            key);
  return {to_unit(w[0], w[1]), to_unit(w[2], w[3])};
}

// Box and Muller, A note on the generation of random normal deviates, 1958.
std::pair<double, double> normal_of(std::pair<double, double> u) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - u.first));
  return {radius * std::cos(2 * kPi * u.second), radius * std::sin(2 * kPi * u.second)};
}

std::vector<float> drawn(const Slot& slot, const PhiloxKey& key, size_t n, uint32_t slot_index) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; i += 2) {
    auto [first, second] = draw(key, i / 2, slot_index, 0);
    if (slot.init == NETCL_INIT_UNIFORM) {
      first = slot.a + (slot.b - slot.a) * first;
      second = slot.a + (slot.b - slot.a) * second;
    } else {
      std::tie(first, second) = normal_of({first, second});
      first = slot.a + slot.b * first;
      second = slot.a + slot.b * second;
    }
    out[i] = static_cast<float>(first);
    if (i + 1 < n) out[i + 1] = static_cast<float>(second);
  }
  return out;
}

// Each element takes the first of its own draws that lies within two deviations.
std::vector<float> truncated(const Slot& slot, const PhiloxKey& key, size_t n,
                             uint32_t slot_index) {
  constexpr uint32_t kMostRounds = 64;  // all of them outside: a chance of 1e-85
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) {
    double z = 3;
    for (uint32_t round = 0; std::fabs(z) > 2 && round < kMostRounds; ++round) {
      z = normal_of(draw(key, i, slot_index, round)).first;
    }
    out[i] = static_cast<float>(slot.a + slot.b * z);
  }
  return out;
}

// Gram and Schmidt, twice for accuracy, on rows of normal numbers; columns if they are fewer.
// Saxe, McClelland, Ganguli, Exact solutions to the nonlinear dynamics of learning, 2014.
std::vector<float> orthogonal(const Slot& slot, const PhiloxKey& key, size_t n,
                              uint32_t slot_index) {
  NETCL_CHECK(slot.desc.shape.rank() >= 2, ErrorCode::kPlugin, "slot ", slot.name,
              ": the orthogonal initialiser needs at least 2 dimensions, not ",
              slot.desc.shape.str());
  const auto rows = static_cast<size_t>(slot.desc.shape[0]);
  if (n == 0) return {};
  const size_t columns = n / rows, vectors = std::min(rows, columns), length = n / vectors;
  std::vector<double> m(n);
  for (size_t i = 0; i < n; i += 2) {
    const auto [first, second] = normal_of(draw(key, i / 2, slot_index, 0));
    m[i] = first;
    if (i + 1 < n) m[i + 1] = second;
  }
  for (size_t v = 0; v < vectors; ++v) {
    double* mine = &m[v * length];
    for (size_t other = 0; other < 2 * v; ++other) {
      const double* base = &m[(other % v) * length];
      const double dot = std::inner_product(mine, mine + length, base, 0.0);
      for (size_t i = 0; i < length; ++i) mine[i] -= dot * base[i];
    }
    const double norm = std::sqrt(std::inner_product(mine, mine + length, mine, 0.0));
    for (size_t i = 0; i < length; ++i) mine[i] /= norm;
  }
  std::vector<float> out(n);
  for (size_t v = 0; v < vectors; ++v) {
    for (size_t i = 0; i < length; ++i) {
      const size_t at = vectors == rows ? v * length + i : i * vectors + v;
      out[at] = static_cast<float>(slot.a * m[v * length + i]);
    }
  }
  return out;
}

}  // namespace

std::vector<float> initial_values(const Slot& slot, uint64_t seed, uint32_t slot_index) {
  const auto n = static_cast<size_t>(slot.desc.shape.num_elements());
  const PhiloxKey key = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  switch (slot.init) {
    case NETCL_INIT_ZEROS:
      return std::vector<float>(n, 0.0f);
    case NETCL_INIT_ONES:
      return std::vector<float>(n, 1.0f);
    case NETCL_INIT_CONSTANT:
      return std::vector<float>(n, static_cast<float>(slot.a));
    case NETCL_INIT_UNIFORM:
    case NETCL_INIT_NORMAL:
      return drawn(slot, key, n, slot_index);
    case NETCL_INIT_TRUNC_NORMAL:
      return truncated(slot, key, n, slot_index);
    case NETCL_INIT_ORTHOGONAL:
      return orthogonal(slot, key, n, slot_index);
    default:
      fail(ErrorCode::kPlugin, "slot ", slot.name, ": unknown initialiser ", slot.init);
  }
}

}  // namespace netcl
