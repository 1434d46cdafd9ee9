// layer_norm, rms_norm, their statistics and input gradient for CPUs: rows in vectors.
//
// Contract   those of norm.cl with S and G 1: x [outer,reduce]; work-item i does `rows` rows from
//            i * rows on.
// Defines    X_DTYPE Y_DTYPE D_DTYPE; RMS HAS_WEIGHT HAS_BIAS (0/1); VECTOR TILE.
// Divisible  nothing.
// Tunables   VECTOR (vector.cl), TILE (lines.cl). Argument rows: rows a work-item.
// Order      blocks of 128 vectors, each in order, then the blocks, then sum_of. The mean first, then the
//            squared distances.
// Needs storage.cl, vector.cl, parts.cl, lines.cl and moments.cl before it.

#if HAS_WEIGHT
#define WEIGHT(r, left) LOADP(f32)(weight + (r), left, 0.0f)
#else
#define WEIGHT(r, left) 1.0f
#endif
#if HAS_BIAS
#define BIAS(r, left) LOADP(f32)(bias + (r), left, 0.0f)
#else
#define BIAS(r, left) 0.0f
#endif

LINES_INLINE void stats_of_lines(__global const TYPE(X_DTYPE)* x, const int reduce, const float eps,
                                 const Lines l, FLOATV* means, FLOATV* factors) {
  moments(x, reduce, RMS, l, means, factors);
  EACH_OF_TILE factors[k] = 1.0f / sqrt(factors[k].s0 / (float)reduce + eps);
}

LINES_INLINE void norm_stats_lines(__global const TYPE(X_DTYPE)* x, __global float* stats,
                                   const int reduce, const float eps, const Lines l) {
  FLOATV means[TILE], factors[TILE];
  stats_of_lines(x, reduce, eps, l, means, factors);
  EACH_OF_TILE vstore2((float2)(means[k].s0, factors[k].s0), k, stats);
}

VECTOR_KERNEL void norm_cpu_stats_rows(__global const TYPE(X_DTYPE)* x, __global float* stats,
                                       const int outer, const int reduce, const int rows,
                                       const float eps) {
  FOR_ROWS(norm_stats_lines(x + at, stats + 2 * (size_t)result, reduce, eps, lines))
}

LINES_INLINE void norm_lines(__global const TYPE(X_DTYPE)* x, __global const float* weight,
                             __global const float* bias, __global TYPE(Y_DTYPE)* y,
                             const int reduce, const float eps, const Lines l) {
  FLOATV means[TILE], factors[TILE];
  stats_of_lines(x, reduce, eps, l, means, factors);
#define PUT(at, k, left, r)                                                             \
  {                                                                                     \
    const FLOATV v = (LOADP(X_DTYPE)(x + at, left, 0.0f) - means[k]) * factors[k];      \
    STOREP(Y_DTYPE)(y + at, left, v * WEIGHT(r, left) + BIAS(r, left));                 \
  }
  PASS(PUT, NOTHING)
#undef PUT
}

VECTOR_KERNEL void norm_cpu_rows(__global const TYPE(X_DTYPE)* x, __global const float* weight,
                                 __global const float* bias, __global TYPE(Y_DTYPE)* y,
                                 const int outer, const int reduce, const int rows,
                                 const float eps) {
  FOR_ROWS(norm_lines(x + at, weight, bias, y + at, reduce, eps, lines))
}

LINES_INLINE void norm_grad_lines(__global const TYPE(D_DTYPE)* dy, __global const TYPE(X_DTYPE)* x,
                                  __global const float* stats, __global const float* weight,
                                  __global TYPE(Y_DTYPE)* dx, const int reduce, const Lines l) {
  float2 st[TILE];
  EACH_OF_TILE st[k] = vload2(k, stats);
  SUMS(sums)
  SUMS(dots)
#define ADD(at, k, left, r)                                                              \
  {                                                                                      \
    const FLOATV h = LOADP(D_DTYPE)(dy + at, left, 0.0f) * WEIGHT(r, left);              \
    sums_block[k] += h;                                                                  \
    dots_block[k] += h * ((LOADP(X_DTYPE)(x + at, left, 0.0f) - st[k].x) * st[k].y);     \
  }
#define ADD_SUMS(k)   \
  ADD_BLOCK(sums, k)  \
  ADD_BLOCK(dots, k)
  PASS(ADD, ADD_SUMS)
  EACH_OF_TILE {
    sums[k] = RMS ? 0.0f : sum_of(sums[k]) / (float)reduce;
    dots[k] = sum_of(dots[k]) / (float)reduce;
  }
#define PUT(at, k, left, r)                                                              \
  {                                                                                      \
    const FLOATV h = LOADP(D_DTYPE)(dy + at, left, 0.0f) * WEIGHT(r, left);              \
    const FLOATV v = (LOADP(X_DTYPE)(x + at, left, 0.0f) - st[k].x) * st[k].y;           \
    STOREP(Y_DTYPE)(dx + at, left, st[k].y * (h - sums[k] - v * dots[k]));               \
  }
  PASS(PUT, NOTHING)
}

VECTOR_KERNEL void norm_cpu_grad_rows(__global const TYPE(D_DTYPE)* dy,
                                      __global const TYPE(X_DTYPE)* x, __global const float* stats,
                                      __global const float* weight, __global TYPE(Y_DTYPE)* dx,
                                      const int outer, const int reduce, const int rows) {
  FOR_ROWS(norm_grad_lines(dy + at, x + at, stats + 2 * (size_t)result, weight, dx + at, reduce,
                           lines))
}
