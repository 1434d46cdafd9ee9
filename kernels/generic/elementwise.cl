// Elementwise ops of one to three inputs.
//
// Contract   x0 x1 x2: inputs (absent ones are stand-ins, never read); y: output of n elements.
//            dense: every input has y's order and count. strided: dims are y's dimensions,
//            s0 s1 s2 the inputs' element strides, right-aligned, leading dimensions 1.
//            runs: as strided; a row or a piece of it is one work-item's (see chain.cl); loop.cl first.
// Defines    N_IN; X0_DTYPE X1_DTYPE X2_DTYPE Y_DTYPE; CTYPE, in which the operands are held;
//            EXPR(x0,x1,x2,p0,p1), which may call normal_cdf. Needs storage.cl and elementwise_functions.cl before it.
// Divisible  nothing; the last work-items find their index outside and stop.
// Tunables   the local size (variants.json). One element a work-item, straight-line code, which a
//            CPU compiler may vectorise over work-items and a GPU coalesces.
// Order      none: one element each.

#define IN0(a) (CTYPE)LOAD(X0_DTYPE)(x0, a)
#if N_IN > 2
#define OPERANDS(a, b, c) IN0(a), (CTYPE)LOAD(X1_DTYPE)(x1, b), (CTYPE)LOAD(X2_DTYPE)(x2, c)
#elif N_IN > 1
#define OPERANDS(a, b, c) IN0(a), (CTYPE)LOAD(X1_DTYPE)(x1, b), (CTYPE)0
#else
#define OPERANDS(a, b, c) IN0(a), (CTYPE)0, (CTYPE)0
#endif

static inline CTYPE apply(const CTYPE x0, const CTYPE x1, const CTYPE x2, const float p0,
                   const float p1) {
  return (CTYPE)(EXPR(x0, x1, x2, p0, p1));
}

__kernel void elementwise_generic_dense(__global const TYPE(X0_DTYPE)* x0, __global const TYPE(X1_DTYPE)* x1,
                                        __global const TYPE(X2_DTYPE)* x2, __global TYPE(Y_DTYPE)* y,
                                        const int n, const float p0, const float p1) {
  const int i = (int)get_global_id(0);
  if (i < n) STORE(Y_DTYPE)(y, i, apply(OPERANDS(i, i, i), p0, p1));
}

// Dimensions of 1 cost a test that is the same for all work-items.
#define PEEL(d)                          \
  if (dims.s##d > 1) {                   \
    const int next = rest / dims.s##d;   \
    const int at = rest - next * dims.s##d; \
    a += at * s0.s##d;                   \
    b += at * s1.s##d;                   \
    c += at * s2.s##d;                   \
    rest = next;                         \
  }

__kernel void elementwise_generic_strided(__global const TYPE(X0_DTYPE)* x0, __global const TYPE(X1_DTYPE)* x1,
                                          __global const TYPE(X2_DTYPE)* x2, __global TYPE(Y_DTYPE)* y,
                                          const int n, const float p0, const float p1,
                                          const int8 dims, const int8 s0, const int8 s1,
                                          const int8 s2) {
  const int i = (int)get_global_id(0);
  if (i >= n) return;
  int rest = i, a = 0, b = 0, c = 0;
  PEEL(7) PEEL(6) PEEL(5) PEEL(4) PEEL(3) PEEL(2) PEEL(1) PEEL(0)
  STORE(Y_DTYPE)(y, i, apply(OPERANDS(a, b, c), p0, p1));
}

#ifdef PIECE
__kernel void elementwise_generic_runs(__global const TYPE(X0_DTYPE)* x0, __global const TYPE(X1_DTYPE)* x1,
                                       __global const TYPE(X2_DTYPE)* x2, __global TYPE(Y_DTYPE)* y,
                                       const int items, const int pieces, const int inner,
                                       const float p0, const float p1, const int8 dims,
                                       const int8 s0, const int8 s1, const int8 s2) {
  const int item = (int)get_global_id(0);
  if (item >= items) return;
  const int row = item / pieces, first = (item - row * pieces) * PIECE;
  const int count = min(PIECE, inner - first);
  int rest = row, a = 0, b = 0, c = 0;
  PEEL(6) PEEL(5) PEEL(4) PEEL(3) PEEL(2) PEEL(1) PEEL(0)
  a += first * RUN0;
  b += first * RUN1;
  c += first * RUN2;
  __global TYPE(Y_DTYPE)* to = y + row * inner + first;
  INDEPENDENT
  for (int j = 0; j < count; ++j)
    STORE(Y_DTYPE)(to, j, apply(OPERANDS(a + j * RUN0, b + j * RUN1, c + j * RUN2), p0, p1));
}
#endif
