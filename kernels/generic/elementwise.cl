// Elementwise ops of one to three inputs.
//
// Contract   x0 x1 x2: inputs (absent ones are stand-ins, never read); y: output of n elements.
//            dense: every input has y's order and count. strided: dims are y's dimensions,
//            s0 s1 s2 the inputs' element strides, right-aligned, leading dimensions 1.
// Defines    N_IN; X0_TYPE X1_TYPE X2_TYPE Y_TYPE; CTYPE, in which the operands are held;
//            EXPR(x0,x1,x2,p0,p1); TO_BOOL: 1 if the result is stored as a truth value.
// Divisible  nothing; the last work-items find their index outside and stop.
// Tunables   the local size (variants.json). One element a work-item, straight-line code, which a
//            CPU compiler vectorises over work-items and a GPU coalesces.
// Order      none: one element each.

#if N_IN > 2
#define OPERANDS(a, b, c) (CTYPE)x0[a], (CTYPE)x1[b], (CTYPE)x2[c]
#elif N_IN > 1
#define OPERANDS(a, b, c) (CTYPE)x0[a], (CTYPE)x1[b], (CTYPE)0
#else
#define OPERANDS(a, b, c) (CTYPE)x0[a], (CTYPE)0, (CTYPE)0
#endif

static inline CTYPE apply(const CTYPE x0, const CTYPE x1, const CTYPE x2, const float p0,
                   const float p1) {
  return (CTYPE)(EXPR(x0, x1, x2, p0, p1));
}

#if TO_BOOL
#define STORE(v) ((v) != 0)
#else
#define STORE(v) ((Y_TYPE)(v))
#endif

__kernel void elementwise_generic_dense(__global const X0_TYPE* x0, __global const X1_TYPE* x1,
                                        __global const X2_TYPE* x2, __global Y_TYPE* y,
                                        const int n, const float p0, const float p1) {
  const int i = (int)get_global_id(0);
  if (i < n) y[i] = STORE(apply(OPERANDS(i, i, i), p0, p1));
}

__kernel void elementwise_generic_strided(__global const X0_TYPE* x0, __global const X1_TYPE* x1,
                                          __global const X2_TYPE* x2, __global Y_TYPE* y,
                                          const int n, const float p0, const float p1,
                                          const int8 dims, const int8 s0, const int8 s1,
                                          const int8 s2) {
  const int i = (int)get_global_id(0);
  if (i >= n) return;
  int rest = i, a = 0, b = 0, c = 0;
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
  PEEL(7) PEEL(6) PEEL(5) PEEL(4) PEEL(3) PEEL(2) PEEL(1) PEEL(0)
#undef PEEL
  y[i] = STORE(apply(OPERANDS(a, b, c), p0, p1));
}
