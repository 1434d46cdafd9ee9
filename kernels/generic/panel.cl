// The register block that the products for CPUs share: TILE rows times VECTORS vectors of VECTOR
// floats, all in named variables, and loads and stores of such vectors.
//
// Use        EACH_ROW(M): M(0) M(1) ..., for the rows; EACH_SUM(M, r): M(r, 0) M(r, 1) ..., for the
//            vectors of a row. LOADV(T, p, i), STOREV(T, p, i, v): VECTOR elements of any float
//            type; VLOAD, VSTORE: vloadN, vstoreN of floats. PANEL_KERNEL: what a kernel is
//            declared with. CLEAR_SUMS declares float vectors sum_ROW_VECTOR of zeros.
// Defines    VECTOR VECTORS TILE.
// Tunables   VECTOR: 4, 8 or 16; VECTORS: 1, 2 or 3; TILE: 4, 6, 8 or 12. TILE * VECTORS sums should
//            stay in registers.
// Needs storage.cl before it.

#define WIDTH (VECTOR * VECTORS)
#define FLOATV NETCL_JOIN(float, VECTOR)
#define VLOAD NETCL_JOIN(vload, VECTOR)
#define VSTORE NETCL_JOIN(vstore, VECTOR)

#if VECTOR == 4
#define LOADV(T, p, i) LOAD4(T)(p, i)
#define STOREV(T, p, i, v) STORE4(T)(p, i, v)
#elif VECTOR == 8
#define LOADV(T, p, i) ((float8)(LOAD4(T)(p, i), LOAD4(T)(p, (i) + 4)))
#define STOREV(T, p, i, v)       \
  {                              \
    const float8 all = v;        \
    STORE4(T)(p, i, all.lo);     \
    STORE4(T)(p, (i) + 4, all.hi); \
  }
#else
#define LOADV(T, p, i)                                                         \
  ((float16)(LOAD4(T)(p, i), LOAD4(T)(p, (i) + 4), LOAD4(T)(p, (i) + 8), \
             LOAD4(T)(p, (i) + 12)))
#define STOREV(T, p, i, v)             \
  {                                    \
    const float16 all = v;             \
    STORE4(T)(p, i, all.lo.lo);        \
    STORE4(T)(p, (i) + 4, all.lo.hi);  \
    STORE4(T)(p, (i) + 8, all.hi.lo);  \
    STORE4(T)(p, (i) + 12, all.hi.hi); \
  }
#endif

// LLVM cuts vectors of 16 floats in halves on many processors unless a function asks for them.
#define PANEL_KERNEL __kernel
#if VECTOR == 16 && defined(__has_attribute)
#if __has_attribute(min_vector_width)
#undef PANEL_KERNEL
#define PANEL_KERNEL __kernel __attribute__((min_vector_width(512)))
#endif
#endif

#if TILE == 4
#define EACH_ROW(M) M(0) M(1) M(2) M(3)
#elif TILE == 6
#define EACH_ROW(M) M(0) M(1) M(2) M(3) M(4) M(5)
#elif TILE == 8
#define EACH_ROW(M) M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7)
#else
#define EACH_ROW(M) M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7) M(8) M(9) M(10) M(11)
#endif

#if VECTORS == 1
#define EACH_SUM(M, r) M(r, 0)
#elif VECTORS == 2
#define EACH_SUM(M, r) M(r, 0) M(r, 1)
#else
#define EACH_SUM(M, r) M(r, 0) M(r, 1) M(r, 2)
#endif

#define CLEAR_SUM(r, v) FLOATV sum_##r##_##v = 0;
#define CLEAR_SUMS_OF(r) EACH_SUM(CLEAR_SUM, r)
#define CLEAR_SUMS EACH_ROW(CLEAR_SUMS_OF)
