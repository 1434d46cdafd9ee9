// How elements become vectors of the type that is computed in, and back. For reduce_loops.h.
//
// A format has Element, the vector V, its number of lanes, load, store, and finish, which makes the
// bits of a result independent of the hardware. Everything is local to the file that includes it,
// because two files compile it for two instruction sets.
#ifndef NETCL_PLUGINS_TRANSPORT_HOST_REDUCE_FORMATS_H_
#define NETCL_PLUGINS_TRANSPORT_HOST_REDUCE_FORMATS_H_

#include <emmintrin.h>
#include <stddef.h>
#include <stdint.h>
#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace netcl::host_transport {
namespace {

#define NETCL_INLINE inline __attribute__((always_inline))

constexpr size_t kVectorBytes = 32;

template <typename T>
struct Wide {
  typedef T type __attribute__((vector_size(kVectorBytes)));
};
using F32x8 = Wide<float>::type;
using U32x8 = Wide<uint32_t>::type;
using I32x8 = Wide<int32_t>::type;
typedef uint16_t U16x8 __attribute__((vector_size(16)));

template <typename V>
NETCL_INLINE V load_bytes(const void* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof(V));
  return v;
}

// Streaming stores need `p` aligned to the vector, up to 16 bytes; plain ones nothing.
template <bool kStream, typename V>
NETCL_INLINE void store_bytes(void* p, V v) {
  if constexpr (!kStream) {
    __builtin_memcpy(p, &v, sizeof(V));
  } else {
    __m128i half[sizeof(V) / 16];
    __builtin_memcpy(half, &v, sizeof(V));
    for (size_t i = 0; i < sizeof(V) / 16; ++i)
      _mm_stream_si128(static_cast<__m128i*>(p) + i, half[i]);
  }
}

NETCL_INLINE F32x8 quiet(F32x8 v) {
  const U32x8 nan = U32x8{} + 0x7fc00000u;
  return v != v ? reinterpret_cast<F32x8>(nan) : v;
}

template <typename T>
struct Integers {
  using Element = T;
  using V = typename Wide<T>::type;
  static constexpr size_t kLanes = kVectorBytes / sizeof(T);
  static constexpr bool kFloat = false;
  static NETCL_INLINE V load(const Element* p) { return load_bytes<V>(p); }
  template <bool kStream>
  static NETCL_INLINE void store(Element* p, V v) {
    store_bytes<kStream>(p, v);
  }
  static NETCL_INLINE V finish(V v) { return v; }
};

struct Floats {
  using Element = float;
  using V = F32x8;
  static constexpr size_t kLanes = 8;
  static constexpr bool kFloat = true;
  static NETCL_INLINE V load(const Element* p) { return load_bytes<V>(p); }
  template <bool kStream>
  static NETCL_INLINE void store(Element* p, V v) {
    store_bytes<kStream>(p, v);
  }
  static NETCL_INLINE V finish(V v) { return quiet(v); }
};

struct Bfloats {
  using Element = uint16_t;
  using V = F32x8;
  static constexpr size_t kLanes = 8;
  static constexpr bool kFloat = true;
  static NETCL_INLINE V load(const Element* p) {
    const U32x8 wide = __builtin_convertvector(load_bytes<U16x8>(p), U32x8);
    return reinterpret_cast<F32x8>(wide << 16);
  }
  // To nearest, ties to even; `v` has no NaN but the quiet one, which stays.
  template <bool kStream>
  static NETCL_INLINE void store(Element* p, V v) {
    U32x8 u = reinterpret_cast<U32x8>(v);
    u = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    store_bytes<kStream>(p, __builtin_convertvector(u, U16x8));
  }
  static NETCL_INLINE V finish(V v) { return quiet(v); }
};

// f16 by arithmetic on f32. Source: F. Giesen, "Half to float done quic" (public domain).
struct Halves {
  using Element = uint16_t;
  using V = F32x8;
  static constexpr size_t kLanes = 8;
  static constexpr bool kFloat = true;
#if defined(__F16C__)
  static NETCL_INLINE V load(const Element* p) {
    return reinterpret_cast<V>(_mm256_cvtph_ps(load_bytes<__m128i>(p)));
  }
  template <bool kStream>
  static NETCL_INLINE void store(Element* p, V v) {
    store_bytes<kStream>(p,
                         _mm256_cvtps_ph(reinterpret_cast<__m256>(v), _MM_FROUND_TO_NEAREST_INT));
  }
#else
  static NETCL_INLINE V load(const Element* p) {
    const U32x8 h = __builtin_convertvector(load_bytes<U16x8>(p), U32x8);
    // 2^112 moves the exponent from bias 15 to 127, also of denormals.
    const F32x8 scale = reinterpret_cast<F32x8>(U32x8{} + 0x77800000u);
    const F32x8 scaled = reinterpret_cast<F32x8>((h & 0x7fffu) << 13) * scale;
    const I32x8 special = (h & 0x7c00u) == 0x7c00u;
    U32x8 u = reinterpret_cast<U32x8>(scaled);
    u |= reinterpret_cast<U32x8>(special) & 0x7f800000u;
    return reinterpret_cast<F32x8>(u | ((h & 0x8000u) << 16));
  }
  template <bool kStream>
  static NETCL_INLINE void store(Element* p, V v) {
    const U32x8 bits = reinterpret_cast<U32x8>(v);
    const U32x8 sign = (bits >> 16) & 0x8000u, u = bits & 0x7fffffffu;
    // Below 2^-14: adding 0.5 rounds to multiples of 2^-24, the spacing of denormals.
    const U32x8 half = U32x8{} + 0x3f000000u;
    const U32x8 tiny =
        reinterpret_cast<U32x8>(reinterpret_cast<F32x8>(u) + reinterpret_cast<F32x8>(half)) - half;
    const U32x8 usual = (u + 0xc8000fffu + ((u >> 13) & 1u)) >> 13;
    U32x8 h = u < 0x38800000u ? tiny : usual;
    h = u >= 0x47800000u ? U32x8{} + 0x7c00u : h;
    h = u > 0x7f800000u ? U32x8{} + 0x7e00u : h;
    store_bytes<kStream>(p, __builtin_convertvector(h | sign, U16x8));
  }
#endif
  static NETCL_INLINE V finish(V v) { return quiet(v); }
};

}  // namespace
}  // namespace netcl::host_transport

#endif  // NETCL_PLUGINS_TRANSPORT_HOST_REDUCE_FORMATS_H_
