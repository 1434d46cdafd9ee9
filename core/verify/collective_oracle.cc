#include "core/verify/collective_oracle.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/abi/netcl_plugin.h"

namespace netcl {

namespace {

uint64_t bits_of(float v) {
  uint32_t bits = 0;
  std::memcpy(&bits, &v, 4);
  return bits;
}

// A float of 1 + exponent_bits + mantissa_bits, to nearest, ties to even.
uint64_t pack_float(float v, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint64_t infinity = ((uint64_t{1} << exponent_bits) - 1) << mantissa_bits;
  if (std::isnan(v)) return infinity | (uint64_t{1} << (mantissa_bits - 1));
  const uint64_t sign = std::signbit(v) ? uint64_t{1} << (exponent_bits + mantissa_bits) : 0;
  if (std::isinf(v)) return sign | infinity;
  const double x = std::fabs(static_cast<double>(v));
  int e = x == 0 ? 1 - bias : std::max(std::ilogb(x), 1 - bias);
  auto q = static_cast<uint64_t>(std::nearbyint(std::ldexp(x, mantissa_bits - e)));
  if (q >> (mantissa_bits + 1) != 0) {
    q >>= 1;
    ++e;
  }
  if (e > bias) return sign | infinity;
  const uint64_t one = uint64_t{1} << mantissa_bits;
  if (q < one) return sign | q;
  return sign | (static_cast<uint64_t>(e + bias) << mantissa_bits) | (q - one);
}

float unpack_float(uint64_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
  const auto e = static_cast<int>(bits >> mantissa_bits) & top;
  const auto m = static_cast<double>(bits & ((uint64_t{1} << mantissa_bits) - 1));
  const double sign = (bits >> (exponent_bits + mantissa_bits)) & 1 ? -1 : 1;
  if (e == top && m != 0) return std::numeric_limits<float>::quiet_NaN();
  if (e == top) return static_cast<float>(sign) * std::numeric_limits<float>::infinity();
  const double x = e == 0 ? std::ldexp(m, 1 - bias - mantissa_bits)
                          : std::ldexp(1 + std::ldexp(m, -mantissa_bits), e - bias);
  return static_cast<float>(sign * x);
}

float to_float(uint32_t dtype, uint64_t bits) {
  if (dtype == NETCL_F16) return unpack_float(bits, 5, 10);
  if (dtype == NETCL_BF16) return unpack_float(bits, 8, 7);
  const auto word = static_cast<uint32_t>(bits);
  float v = 0;
  std::memcpy(&v, &word, 4);
  return v;
}

uint64_t from_float(uint32_t dtype, float v) {
  if (dtype == NETCL_F16) return pack_float(v, 5, 10);
  if (dtype == NETCL_BF16) return pack_float(v, 8, 7);
  return std::isnan(v) ? 0x7fc00000u : bits_of(v);
}

float reduce_floats(uint32_t op, const std::vector<float>& x, const std::vector<double>& weights) {
  if (op != NETCL_MEAN) {
    volatile float acc = x[0];  // volatile: one rounding an operation
    for (size_t r = 1; r < x.size(); ++r) {
      const float a = acc, b = x[r];
      if (op == NETCL_SUM) acc = a + b;
      if (op == NETCL_PROD) acc = a * b;
      if (op == NETCL_MAX && (std::isnan(b) || b > a)) acc = b;
      if (op == NETCL_MIN && (std::isnan(b) || b < a)) acc = b;
    }
    return acc;
  }
  bool any = false;
  double total = 0;
  volatile float acc = 0;
  for (size_t r = 0; r < x.size(); ++r) {
    if (weights[r] == 0) continue;
    volatile const float product = static_cast<float>(weights[r]) * x[r];
    acc = any ? acc + product : product;
    any = true;
    total += weights[r];
  }
  return any ? acc / static_cast<float>(total) : std::numeric_limits<float>::quiet_NaN();
}

template <typename T>
T reduce_integers(uint32_t op, const std::vector<uint64_t>& bits) {
  if (op == NETCL_MEAN) {
    __int128 total = 0;
    for (const uint64_t b : bits) total += static_cast<T>(b);
    return static_cast<T>(total / static_cast<__int128>(bits.size()));
  }
  // Unsigned 64-bit arithmetic, cut to the type, wraps as the type does.
  T acc = static_cast<T>(bits[0]);
  for (size_t r = 1; r < bits.size(); ++r) {
    const T b = static_cast<T>(bits[r]);
    const auto wide_a = static_cast<uint64_t>(acc), wide_b = static_cast<uint64_t>(b);
    if (op == NETCL_SUM) acc = static_cast<T>(wide_a + wide_b);
    if (op == NETCL_PROD) acc = static_cast<T>(wide_a * wide_b);
    if (op == NETCL_MAX && b > acc) acc = b;
    if (op == NETCL_MIN && b < acc) acc = b;
  }
  return acc;
}

}  // namespace

uint64_t size_of_dtype(uint32_t dtype) {
  switch (dtype) {
    case NETCL_F32:
    case NETCL_I32:
      return 4;
    case NETCL_I64:
      return 8;
    case NETCL_U8:
      return 1;
    default:
      return 2;
  }
}

bool is_float_dtype(uint32_t dtype) {
  return dtype == NETCL_F32 || dtype == NETCL_F16 || dtype == NETCL_BF16;
}

uint64_t reduce_element(uint32_t dtype, uint32_t op, const std::vector<uint64_t>& bits,
                        const std::vector<double>& weights) {
  if (is_float_dtype(dtype)) {
    std::vector<float> x;
    for (const uint64_t b : bits) x.push_back(to_float(dtype, b));
    return from_float(dtype, reduce_floats(op, x, weights));
  }
  if (dtype == NETCL_U8) return reduce_integers<uint8_t>(op, bits);
  if (dtype == NETCL_I32) {
    return static_cast<uint32_t>(reduce_integers<int32_t>(op, bits));
  }
  return static_cast<uint64_t>(reduce_integers<int64_t>(op, bits));
}

}  // namespace netcl
