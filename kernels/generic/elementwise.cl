// Elementwise ops of one to three inputs.
//
// Contract   x0 x1 x2: inputs (absent ones are stand-ins, never read); y: output of n elements.
//            dense: every input has y's order and count. strided: dims are y's dimensions,
//            s0 s1 s2 the inputs' element strides, right-aligned, leading dimensions 1.
// Defines    N_IN; X0_DTYPE X1_DTYPE X2_DTYPE Y_DTYPE; CTYPE, in which the operands are held;
//            EXPR(x0,x1,x2,p0,p1), which may call normal_cdf. Needs storage.cl before it.
// Divisible  nothing; the last work-items find their index outside and stop.
// Tunables   the local size (variants.json). One element a work-item, straight-line code, which a
//            CPU compiler vectorises over work-items and a GPU coalesces.
// Order      none: one element each.

#define IN0(a) (CTYPE)LOAD(X0_DTYPE)(x0, a)
#if N_IN > 2
#define OPERANDS(a, b, c) IN0(a), (CTYPE)LOAD(X1_DTYPE)(x1, b), (CTYPE)LOAD(X2_DTYPE)(x2, c)
#elif N_IN > 1
#define OPERANDS(a, b, c) IN0(a), (CTYPE)LOAD(X1_DTYPE)(x1, b), (CTYPE)0
#else
#define OPERANDS(a, b, c) IN0(a), (CTYPE)0, (CTYPE)0
#endif

// The distribution function of the normal distribution, for EXPR: compilers for CPUs call a scalar erf
// for every element, and vectorise this. With z = |x| / sqrt 2 and t = 1 / (1 + z / 2) the tail is
// t exp(P(t) - z^2) / 2; P is the Chebyshev fit of degree 9 on z from 0 to 10. Error below 4e-7.
static inline float normal_cdf(const float x) {
  const float z = fabs(x) * 0.70710678f;
  const float t = 1.0f / (1.0f + 0.5f * z);
  float p = 0.144930214f;
  p = p * t - 0.6808272f;
  p = p * t + 1.15673375f;
  p = p * t - 0.696251929f;
  p = p * t - 0.0802804306f;
  p = p * t + 0.00126758532f;
  p = p * t + 0.0346027985f;
  p = p * t + 0.3866404f;
  p = p * t + 0.998632789f;
  p = p * t - 1.26544797f;
  const float tail = 0.5f * t * exp(p - z * z);
  return x < 0.0f ? tail : 1.0f - tail;
}

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

__kernel void elementwise_generic_strided(__global const TYPE(X0_DTYPE)* x0, __global const TYPE(X1_DTYPE)* x1,
                                          __global const TYPE(X2_DTYPE)* x2, __global TYPE(Y_DTYPE)* y,
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
  STORE(Y_DTYPE)(y, i, apply(OPERANDS(a, b, c), p0, p1));
}
