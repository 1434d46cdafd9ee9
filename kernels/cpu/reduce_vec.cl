// sum, mean, max_reduce, min_reduce and var of floats for CPUs: rows in vectors, or neighbouring columns.
//
// Contract   those of reduce.cl and var.cl. correction: of var, else a stand-in.
// Defines    X_DTYPE Y_DTYPE; OP: OP_sum OP_mean OP_max_reduce OP_min_reduce OP_var; VECTOR TILE.
// Divisible  nothing.
// Tunables   VECTOR (vector.cl), TILE (lines.cl). Argument rows: rows a work-item.
// Order      blocks of 128 vectors, each in order, then the blocks; of rows, then a fixed tree.
// NaN        spreads through max and min too.
// Needs storage.cl, vector.cl, parts.cl, lines.cl and, for var, moments.cl before it.

#define OP_sum 0
#define OP_mean 1
#define OP_max_reduce 2
#define OP_min_reduce 3
#define OP_var 4

#if OP == OP_max_reduce || OP == OP_min_reduce
#if OP == OP_max_reduce
#define FIRST (-INFINITY)
#define BEYOND(a, b) ((a) > (b))
#else
#define FIRST INFINITY
#define BEYOND(a, b) ((a) < (b))
#endif
#define COMBINED(a, b) (BEYOND(a, b) || (a) != (a) ? (a) : (b))

static inline float extreme_of(const FLOATV v) {
#if VECTOR == 16
  const float8 eight = COMBINED(v.hi, v.lo);
  const float4 four = COMBINED(eight.hi, eight.lo);
#elif VECTOR == 8
  const float4 four = COMBINED(v.hi, v.lo);
#else
  const float4 four = v;
#endif
  const float2 two = COMBINED(four.hi, four.lo);
  return COMBINED(two.y, two.x);
}

LINES_INLINE void reduce_lines(__global const TYPE(X_DTYPE)* x, __global TYPE(Y_DTYPE)* y,
                               const int reduce, const int correction, const Lines l) {
  FLOATV most[TILE];
  EACH_OF_TILE most[k] = FIRST;
#define RAISE(at, k, left, r)                                               \
  {                                                                         \
    const FLOATV v = LOADP(X_DTYPE)(x + at, left, FIRST);                   \
    most[k] = COMBINED(v, most[k]);                                         \
  }
  PASS(RAISE, NOTHING)
  EACH_OF_TILE most[k] = FOLD(most, k, extreme_of);
  PUT_RESULTS(Y_DTYPE, y, most)
}
#else
LINES_INLINE void reduce_lines(__global const TYPE(X_DTYPE)* x, __global TYPE(Y_DTYPE)* y,
                               const int reduce, const int correction, const Lines l) {
#if OP == OP_var
  FLOATV means[TILE], sums[TILE];
  moments(x, reduce, 0, l, means, sums);
  EACH_OF_TILE sums[k] /= (float)max(reduce - correction, 0);
#else
  SUMS(sums)
#define ADD(at, k, left, r) sums_block[k] += LOADP(X_DTYPE)(x + at, left, 0.0f);
#define ADD_SUMS(k) ADD_BLOCK(sums, k)
  PASS(ADD, ADD_SUMS)
  EACH_OF_TILE sums[k] = FOLD(sums, k, sum_of);
#if OP == OP_mean
  EACH_OF_TILE sums[k] /= (float)reduce;
#endif
#endif
  PUT_RESULTS(Y_DTYPE, y, sums)
}
#endif

VECTOR_KERNEL void reduce_cpu_rows(__global const TYPE(X_DTYPE)* x, __global TYPE(Y_DTYPE)* y,
                                   const int outer, const int reduce, const int rows,
                                   const int correction) {
  FOR_ROWS(reduce_lines(x + at, y + result, reduce, correction, lines))
}

VECTOR_KERNEL void reduce_cpu_columns(__global const TYPE(X_DTYPE)* x, __global TYPE(Y_DTYPE)* y,
                                      const int reduce, const int inner, const int correction) {
  FOR_COLUMNS(reduce_lines(x + at, y + result, reduce, correction, lines))
}
