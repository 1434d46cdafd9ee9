#include "reduce.h"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "netcl_plugin.h"

namespace {

uint32_t bits_of(float x) {
  uint32_t out;
  std::memcpy(&out, &x, sizeof(out));
  return out;
}
float float_of(uint32_t bits) {
  float out;
  std::memcpy(&out, &bits, sizeof(out));
  return out;
}

// A format says how an element becomes a number that is computed with, and back.
struct F32 {
  using Element = float;
  static float load(float x) { return x; }
  static float store(float x) { return x; }
};
struct Bf16 {  // the upper half of an f32
  using Element = uint16_t;
  static float load(uint16_t x) { return float_of(static_cast<uint32_t>(x) << 16); }
  static uint16_t store(float x) {  // to nearest, ties to even
    const uint32_t u = bits_of(x);
    return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
};
struct F16 {
  using Element = uint16_t;
  static float load(uint16_t x) {
    const uint32_t exponent = (x >> 10) & 31u, fraction = x & 0x3ffu;
    float out = std::ldexp(static_cast<float>(fraction), -24);
    if (exponent == 31) out = float_of(0x7f800000u | fraction << 13);
    if (exponent > 0 && exponent < 31) out = float_of((exponent + 112) << 23 | fraction << 13);
    return (x & 0x8000u) != 0 ? -out : out;
  }
  static uint16_t store(float x) {  // to nearest, ties to even
    const uint32_t sign = (bits_of(x) >> 16) & 0x8000u, u = bits_of(x) & 0x7fffffffu;
    uint32_t out = (u + 0xc8000fffu + ((u >> 13) & 1u)) >> 13;
    // Below 2^-14: adding 0.5 rounds to multiples of 2^-24, the spacing of the smallest numbers.
    if (u < 0x38800000u) out = bits_of(float_of(u) + 0.5f) - bits_of(0.5f);
    if (u >= 0x47800000u) out = 0x7c00u;  // infinity
    if (u > 0x7f800000u) out = 0x7e00u;   // no number
    return static_cast<uint16_t>(out | sign);
  }
};
template <typename T>
struct Integer {
  using Element = T;
  static T load(T x) { return x; }
  static T store(T x) { return x; }
};

// max and min keep the first of equal values and pass on what is no number (x != x).
template <typename T>
T combine(uint32_t redop, T a, T b) {
  if (redop == NETCL_MAX) return b > a || b != b ? b : a;
  if (redop == NETCL_MIN) return b < a || b != b ? b : a;
  if constexpr (std::is_floating_point_v<T>) {
    return redop == NETCL_PROD ? a * b : a + b;
  } else {
    using Wrapping = std::make_unsigned_t<T>;  // signed overflow is undefined
    const auto x = static_cast<Wrapping>(a), y = static_cast<Wrapping>(b);
    return static_cast<T>(redop == NETCL_PROD ? x * y : x + y);
  }
}

template <typename Format>
void reduce_all(uint32_t redop, const std::vector<const void*>& in, void* out, size_t count) {
  using E = typename Format::Element;
  for (size_t i = 0; i < count; ++i) {
    auto value = Format::load(static_cast<const E*>(in[0])[i]);
    for (size_t r = 1; r < in.size(); ++r)
      value = combine(redop, value, Format::load(static_cast<const E*>(in[r])[i]));
    if constexpr (std::is_floating_point_v<decltype(value)>)
      if (value != value) value = float_of(0x7fc00000u);  // the quiet one with a clear sign
    static_cast<E*>(out)[i] = Format::store(value);
  }
}

// (w0 x0 + w1 x1 + ...) / (w0 + w1 + ...); a rank of weight 0 is not read.
template <typename Format>
void mean_of_floats(const std::vector<const void*>& in, const std::vector<double>& weights,
                    void* out, size_t count) {
  using E = typename Format::Element;
  double total = 0;
  for (const double w : weights) total += w;
  for (size_t i = 0; i < count; ++i) {
    float value = 0;
    bool first = true;
    for (size_t r = 0; r < in.size(); ++r) {
      if (weights[r] == 0) continue;
      const float x =
          Format::load(static_cast<const E*>(in[r])[i]) * static_cast<float>(weights[r]);
      value = first ? x : value + x;
      first = false;
    }
    value /= static_cast<float>(total);
    static_cast<E*>(out)[i] = Format::store(value != value ? float_of(0x7fc00000u) : value);
  }
}

// The sum, which does not wrap, by the number of ranks, cut towards zero.
template <typename T>
void mean_of_integers(const std::vector<const void*>& in, void* out, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    __extension__ __int128 total = 0;
    for (const void* from : in) total += static_cast<const T*>(from)[i];
    static_cast<T*>(out)[i] = static_cast<T>(total / static_cast<int64_t>(in.size()));
  }
}

template <typename Format>
void reduce_format(uint32_t redop, const std::vector<const void*>& in,
                   const std::vector<double>& weights, void* out, size_t count) {
  using E = typename Format::Element;
  if (redop != NETCL_MEAN) return reduce_all<Format>(redop, in, out, count);
  if constexpr (std::is_same_v<Format, Integer<E>>) {
    mean_of_integers<E>(in, out, count);
  } else {
    mean_of_floats<Format>(in, weights, out, count);
  }
}

}  // namespace

size_t element_bytes(uint32_t dtype) {
  switch (dtype) {
    case NETCL_F32:
    case NETCL_I32:
      return 4;
    case NETCL_F16:
    case NETCL_BF16:
      return 2;
    case NETCL_I64:
      return 8;
    case NETCL_U8:
    case NETCL_BOOL:
      return 1;
    default:
      return 0;
  }
}

bool can_reduce(uint32_t dtype, uint32_t redop) {
  return element_bytes(dtype) > 0 && dtype != NETCL_BOOL && redop >= NETCL_SUM &&
         redop <= NETCL_MEAN;
}

void reduce(uint32_t dtype, uint32_t redop, const std::vector<const void*>& in,
            const std::vector<double>& weights, void* out, size_t count) {
  switch (dtype) {
    case NETCL_F32:
      return reduce_format<F32>(redop, in, weights, out, count);
    case NETCL_F16:
      return reduce_format<F16>(redop, in, weights, out, count);
    case NETCL_BF16:
      return reduce_format<Bf16>(redop, in, weights, out, count);
    case NETCL_I32:
      return reduce_format<Integer<int32_t>>(redop, in, weights, out, count);
    case NETCL_I64:
      return reduce_format<Integer<int64_t>>(redop, in, weights, out, count);
    case NETCL_U8:
      return reduce_format<Integer<uint8_t>>(redop, in, weights, out, count);
    default:
      return;  // can_reduce() says no
  }
}
