#include "core/tensor/half.h"

#include <cmath>
#include <cstring>

namespace netcl {

namespace {

uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

float float_of(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

}  // namespace

uint16_t f16_from_float(float x) {
  const uint16_t sign = static_cast<uint16_t>((bits_of(x) >> 16) & 0x8000u);
  if (std::isnan(x)) return static_cast<uint16_t>(sign | 0x7e00u);
  const float size = std::fabs(x);
  if (size >= 65520.0f) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to infinity
  // In units of the last place of its binade (2^-24 below 2^-14), rounded to even by the host.
  const int exponent = size < 6.103515625e-05f ? -14 : std::ilogb(size);
  const auto units = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  // `units` has its leading one in bit 10 unless subnormal; adding carries into the exponent.
  return static_cast<uint16_t>(sign | ((static_cast<uint32_t>(exponent + 14) << 10) + units));
}

float f16_to_float(uint16_t bits) {
  const uint32_t exponent = (bits >> 10) & 0x1fu, mantissa = bits & 0x3ffu;
  const float sign = (bits & 0x8000u) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return mantissa != 0 ? std::nanf("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), static_cast<int>(exponent) - 25);
}

uint16_t bf16_from_float(float x) {
  const uint32_t bits = bits_of(x);
  if (std::isnan(x)) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float bf16_to_float(uint16_t bits) { return float_of(static_cast<uint32_t>(bits) << 16); }

double rounded_to(DType dtype, double x) {
  switch (dtype) {
    case DType::kF32:
      return static_cast<double>(static_cast<float>(x));
    case DType::kF16:
      return static_cast<double>(f16_to_float(f16_from_float(static_cast<float>(x))));
    case DType::kBF16:
      return static_cast<double>(bf16_to_float(bf16_from_float(static_cast<float>(x))));
    default:
      return x;
  }
}

}  // namespace netcl
