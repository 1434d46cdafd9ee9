// softmax and log_softmax over columns, and their gradients over rows and columns, for CPUs: lines in
// vectors.
//
// Contract   y: Y_DTYPE, of GRAD 0 those of softmax.cl from x: X_DTYPE (other: a stand-in); of GRAD 1
//            the gradients from dy (x) and the result (other: O_DTYPE). Each [outer,reduce,inner].
// Defines    X_DTYPE O_DTYPE Y_DTYPE; GRAD LOG: 1 for gradients, for the log forms, else 0; STAGED: 1 if
//            y may hold the exponentials on the way (f32), 0 if they are computed twice, so that 16-bit
//            results round once; VECTOR TILE.
// Divisible  nothing.
// Tunables   VECTOR (vector.cl), TILE (lines.cl). Argument rows: rows a work-item.
// Order      blocks of 128 vectors, each in order, then the blocks; of rows, then sum_of.
// Needs storage.cl, vector.cl, parts.cl and lines.cl before it.

#define ADD_SUMS(k) ADD_BLOCK(sums, k)

#if GRAD
#if LOG
#define SHARE(d, v) (d)
#define SLOPE(d, v, sum) ((d) - exp(v) * (sum))
#else
#define SHARE(d, v) ((d) * (v))
#define SLOPE(d, v, sum) ((v) * ((d) - (sum)))
#endif

LINES_INLINE void softmax_lines(__global const TYPE(X_DTYPE)* x, __global const TYPE(O_DTYPE)* other,
                                __global TYPE(Y_DTYPE)* y, const Lines l) {
  SUMS(sums)
#define ADD(at, k, left, r)                                        \
  sums_block[k] += SHARE(LOADP(X_DTYPE)(x + at, left, 0.0f),       \
                         LOADP(O_DTYPE)(other + at, left, 0.0f));
  PASS(ADD, ADD_SUMS)
  EACH_OF_TILE sums[k] = FOLD(sums, k, sum_of);
#define PUT(at, k, left, r)                                                              \
  STOREP(Y_DTYPE)(y + at, left, SLOPE(LOADP(X_DTYPE)(x + at, left, 0.0f),                \
                                      LOADP(O_DTYPE)(other + at, left, 0.0f), sums[k]));
  PASS(PUT, NOTHING)
}

VECTOR_KERNEL void softmax_grad_cpu_rows(__global const TYPE(X_DTYPE)* dy,
                                         __global const TYPE(O_DTYPE)* y,
                                         __global TYPE(Y_DTYPE)* dx, const int outer,
                                         const int reduce, const int rows) {
  FOR_ROWS(softmax_lines(dy + at, y + at, dx + at, lines))
}
#else
LINES_INLINE void softmax_lines(__global const TYPE(X_DTYPE)* x, __global const TYPE(O_DTYPE)* other,
                                __global TYPE(Y_DTYPE)* y, const Lines l) {
  FLOATV tops[TILE];
  EACH_OF_TILE tops[k] = -INFINITY;
#define RAISE(at, k, left, r)                                  \
  {                                                            \
    const FLOATV v = LOADP(X_DTYPE)(x + at, left, -INFINITY);  \
    tops[k] = v > tops[k] ? v : tops[k];                       \
  }
  PASS(RAISE, NOTHING)
  SUMS(sums)
#if STAGED
#define KEEP(at, left, e) STOREP(Y_DTYPE)(y + at, left, e);
#else
#define KEEP(at, left, e)
#endif
#define ADD(at, k, left, r)                                                    \
  {                                                                            \
    const FLOATV e = exp(LOADP(X_DTYPE)(x + at, left, -INFINITY) - tops[k]);   \
    sums_block[k] += e;                                                        \
    KEEP(at, left, e)                                                          \
  }
  PASS(ADD, ADD_SUMS)
  EACH_OF_TILE sums[k] = LOG ? log(sums[k]) : 1.0f / sums[k];
#if LOG
#define RESULT(at, k, left) (LOADP(X_DTYPE)(x + at, left, 0.0f) - tops[k] - sums[k])
#elif STAGED
#define RESULT(at, k, left) (LOADP(Y_DTYPE)(y + at, left, 0.0f) * sums[k])
#else
#define RESULT(at, k, left) (exp(LOADP(X_DTYPE)(x + at, left, 0.0f) - tops[k]) * sums[k])
#endif
#define PUT(at, k, left, r) STOREP(Y_DTYPE)(y + at, left, RESULT(at, k, left));
  PASS(PUT, NOTHING)
}
#endif

VECTOR_KERNEL void softmax_cpu_columns(__global const TYPE(X_DTYPE)* x,
                                       __global const TYPE(O_DTYPE)* other,
                                       __global TYPE(Y_DTYPE)* y, const int reduce,
                                       const int inner) {
  FOR_COLUMNS(softmax_lines(x + at, other + at, y + at, lines))
}
