// Vectors of VECTOR floats: their type, loads, stores and sums.
//
// Use        FLOATV, INTV: the types. LOADV(T, p, i), STOREV(T, p, i, v): VECTOR elements of any float
//            type, no alignment beyond the element's. VLOAD, VSTORE: vloadN, vstoreN. sum_of(v): a
//            fixed tree. VECTOR_KERNEL: what a kernel with such vectors is declared with.
// Defines    VECTOR.
// Tunables   VECTOR: 4, 8 or 16.
// Order      sum_of: the halves are added until one number is left.
// Needs storage.cl before it.

// Where a loop is unrolled by a pragma, its remainder is not, which clang would say on the terminal.
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

#define FLOATV NETCL_JOIN(float, VECTOR)
#define INTV NETCL_JOIN(int, VECTOR)
#define VLOAD NETCL_JOIN(vload, VECTOR)
#define VSTORE NETCL_JOIN(vstore, VECTOR)

#define LOADV(T, p, i) NETCL_JOIN(netcl_loadv_, T)(p, i)
#define STOREV(T, p, i, v) { NETCL_JOIN(netcl_storev_, T)(p, i, v) }
#define netcl_loadv_f32(p, i) VLOAD(0, (p) + (i))
#define netcl_loadv_f16(p, i) LOAD_IN_FOURS(f16, p, i)
#define netcl_loadv_bf16(p, i) LOAD_IN_FOURS(bf16, p, i)
#define netcl_storev_f32(p, i, v) VSTORE(v, 0, (p) + (i));
#define netcl_storev_f16(p, i, v) STORE_IN_FOURS(f16, p, i, v)
#define netcl_storev_bf16(p, i, v) STORE_IN_FOURS(bf16, p, i, v)

#if VECTOR == 4
#define LOAD_IN_FOURS(T, p, i) LOAD4(T)(p, i)
#define STORE_IN_FOURS(T, p, i, v) STORE4(T)(p, i, v);
#elif VECTOR == 8
#define LOAD_IN_FOURS(T, p, i) ((float8)(LOAD4(T)(p, i), LOAD4(T)(p, (i) + 4)))
#define STORE_IN_FOURS(T, p, i, v) \
  const float8 all = v;            \
  STORE4(T)(p, i, all.lo);         \
  STORE4(T)(p, (i) + 4, all.hi);
#else
#define LOAD_IN_FOURS(T, p, i)                                             \
  ((float16)(LOAD4(T)(p, i), LOAD4(T)(p, (i) + 4), LOAD4(T)(p, (i) + 8), \
             LOAD4(T)(p, (i) + 12)))
#define STORE_IN_FOURS(T, p, i, v)   \
  const float16 all = v;             \
  STORE4(T)(p, i, all.lo.lo);        \
  STORE4(T)(p, (i) + 4, all.lo.hi);  \
  STORE4(T)(p, (i) + 8, all.hi.lo);  \
  STORE4(T)(p, (i) + 12, all.hi.hi);
#endif

// LLVM cuts vectors of 16 floats in halves on many processors unless a function asks for them.
#define VECTOR_KERNEL __kernel
#if VECTOR == 16 && defined(__has_attribute)
#if __has_attribute(min_vector_width)
#undef VECTOR_KERNEL
#define VECTOR_KERNEL __kernel __attribute__((min_vector_width(512)))
#endif
#endif

static inline float sum_of(const FLOATV v) {
#if VECTOR == 16
  const float8 eight = v.lo + v.hi;
  const float4 four = eight.lo + eight.hi;
#elif VECTOR == 8
  const float4 four = v.lo + v.hi;
#else
  const float4 four = v;
#endif
  return (four.x + four.z) + (four.y + four.w);
}
