// softmax, log_softmax and their gradients over the middle of [outer, reduce, inner].
//
// Contract   x, y: X_DTYPE, Y_DTYPE; dy: X_DTYPE, dx: Z_DTYPE. softmax: y = exp(x - max) / sum;
//            log_softmax: y = x - max - log sum;
//            gradients: dx = y (dy - sum(dy y)) and dx = dy - exp(y) sum(dy).
// Defines    X_DTYPE Y_DTYPE, and Z_DTYPE for gradients; LOG: 1 for the log forms, else 0;
//            STAGED: 1 if y may hold the exponentials on the way (f32), 0 if they are computed
//            twice, so that 16-bit results round once; GROUP (group kernels,
//            which need group_reduce.cl). Needs storage.cl
//            before it.
// Divisible  nothing.
// Order      column: in order. lanes: eight interleaved sums, a fixed tree, then the rest.
//            group: strided partial sums, then a tree.

#ifndef Z_DTYPE  // a program of the forward kernels
#define Z_DTYPE X_DTYPE
#endif

__kernel void softmax_generic_column(__global const TYPE(X_DTYPE)* x, __global TYPE(Y_DTYPE)* y,
                                     const int results, const int reduce, const int inner) {
  const int i = (int)get_global_id(0);
  if (i >= results) return;
  const int o = i / inner;
  const size_t base = (size_t)o * reduce * inner + (i - o * inner);
  x += base;
  y += base;
  float top = -INFINITY;
  for (int r = 0; r < reduce; ++r) top = fmax(top, LOAD(X_DTYPE)(x, (size_t)r * inner));
  float sum = 0;
  for (int r = 0; r < reduce; ++r) {
    const float e = exp(LOAD(X_DTYPE)(x, (size_t)r * inner) - top);
    sum += e;
#if STAGED
    y[(size_t)r * inner] = e;
#endif
  }
#if LOG
  const float log_sum = log(sum);
  for (int r = 0; r < reduce; ++r)
    STORE(Y_DTYPE)(y, (size_t)r * inner, LOAD(X_DTYPE)(x, (size_t)r * inner) - top - log_sum);
#elif STAGED
  for (int r = 0; r < reduce; ++r) y[(size_t)r * inner] /= sum;
#else
  for (int r = 0; r < reduce; ++r)
    STORE(Y_DTYPE)(y, (size_t)r * inner, exp(LOAD(X_DTYPE)(x, (size_t)r * inner) - top) / sum);
#endif
}

__kernel void softmax_grad_generic_column(__global const TYPE(X_DTYPE)* dy,
                                          __global const TYPE(Y_DTYPE)* y,
                                          __global TYPE(Z_DTYPE)* dx, const int results,
                                          const int reduce, const int inner) {
  const int i = (int)get_global_id(0);
  if (i >= results) return;
  const int o = i / inner;
  const size_t base = (size_t)o * reduce * inner + (i - o * inner);
  dy += base;
  y += base;
  dx += base;
  float sum = 0;
  for (int r = 0; r < reduce; ++r) {
    const size_t at = (size_t)r * inner;
#if LOG
    sum += LOAD(X_DTYPE)(dy, at);
#else
    sum += LOAD(X_DTYPE)(dy, at) * LOAD(Y_DTYPE)(y, at);
#endif
  }
  for (int r = 0; r < reduce; ++r) {
    const size_t at = (size_t)r * inner;
#if LOG
    STORE(Z_DTYPE)(dx, at, LOAD(X_DTYPE)(dy, at) - exp(LOAD(Y_DTYPE)(y, at)) * sum);
#else
    STORE(Z_DTYPE)(dx, at, LOAD(Y_DTYPE)(y, at) * (LOAD(X_DTYPE)(dy, at) - sum));
#endif
  }
}

#define LOAD8(p, i) (float8)(LOAD4(X_DTYPE)(p, i), LOAD4(X_DTYPE)(p, (i) + 4))
static inline void store8(__global TYPE(Y_DTYPE)* y, const int i, const float8 v) {
  STORE4(Y_DTYPE)(y, i, v.lo);
  STORE4(Y_DTYPE)(y, i + 4, v.hi);
}

static inline float sum8(const float8 v) {
  const float4 a = v.lo + v.hi;
  return (a.x + a.z) + (a.y + a.w);
}
static inline float max8(const float8 v) {
  const float4 a = fmax(v.lo, v.hi);
  return fmax(fmax(a.x, a.z), fmax(a.y, a.w));
}

// One work-item a row (inner == 1), explicit vectors for CPUs.
__kernel void softmax_generic_lanes(__global const TYPE(X_DTYPE)* x, __global TYPE(Y_DTYPE)* y,
                                    const int reduce) {
  const size_t base = (size_t)get_global_id(0) * reduce;
  x += base;
  y += base;
  const int whole = reduce & ~7;
  float8 tops = (float8)(-INFINITY);
  for (int r = 0; r < whole; r += 8) tops = fmax(tops, LOAD8(x, r));
  float top = max8(tops);
  for (int r = whole; r < reduce; ++r) top = fmax(top, LOAD(X_DTYPE)(x, r));
  float8 sums = 0;
  for (int r = 0; r < whole; r += 8) {
    const float8 e = exp(LOAD8(x, r) - top);
    sums += e;
#if STAGED
    vstore8(e, 0, y + r);
#endif
  }
  float sum = sum8(sums);
  for (int r = whole; r < reduce; ++r) {
    const float e = exp(LOAD(X_DTYPE)(x, r) - top);
    sum += e;
#if STAGED
    y[r] = e;
#endif
  }
#if LOG
  const float log_sum = log(sum);
  for (int r = 0; r < whole; r += 8) store8(y, r, LOAD8(x, r) - top - log_sum);
  for (int r = whole; r < reduce; ++r) STORE(Y_DTYPE)(y, r, LOAD(X_DTYPE)(x, r) - top - log_sum);
#elif STAGED
  for (int r = 0; r < whole; r += 8) vstore8(vload8(0, y + r) / sum, 0, y + r);
  for (int r = whole; r < reduce; ++r) y[r] /= sum;
#else
  for (int r = 0; r < whole; r += 8) store8(y, r, exp(LOAD8(x, r) - top) / sum);
  for (int r = whole; r < reduce; ++r) STORE(Y_DTYPE)(y, r, exp(LOAD(X_DTYPE)(x, r) - top) / sum);
#endif
}

#ifdef GROUP
// One work-group a row (inner == 1).
__kernel void softmax_generic_group(__global const TYPE(X_DTYPE)* x, __global TYPE(Y_DTYPE)* y,
                                    const int reduce) {
  __local float parts[GROUP];
  const int t = (int)get_local_id(0);
  const size_t base = (size_t)get_group_id(0) * reduce;
  x += base;
  y += base;
  float acc = -INFINITY;
  for (int r = t; r < reduce; r += GROUP) acc = fmax(acc, LOAD(X_DTYPE)(x, r));
  const float top = group_max(acc, parts);
  acc = 0;
  for (int r = t; r < reduce; r += GROUP) acc += exp(LOAD(X_DTYPE)(x, r) - top);
  const float sum = group_sum(acc, parts);
#if LOG
  const float log_sum = log(sum);
  for (int r = t; r < reduce; r += GROUP) STORE(Y_DTYPE)(y, r, LOAD(X_DTYPE)(x, r) - top - log_sum);
#else
  for (int r = t; r < reduce; r += GROUP)
    STORE(Y_DTYPE)(y, r, exp(LOAD(X_DTYPE)(x, r) - top) / sum);
#endif
}

__kernel void softmax_grad_generic_group(__global const TYPE(X_DTYPE)* dy,
                                         __global const TYPE(Y_DTYPE)* y,
                                         __global TYPE(Z_DTYPE)* dx, const int reduce) {
  __local float parts[GROUP];
  const int t = (int)get_local_id(0);
  const size_t base = (size_t)get_group_id(0) * reduce;
  dy += base;
  y += base;
  dx += base;
  float acc = 0;
#if LOG
  for (int r = t; r < reduce; r += GROUP) acc += LOAD(X_DTYPE)(dy, r);
  const float sum = group_sum(acc, parts);
  for (int r = t; r < reduce; r += GROUP)
    STORE(Z_DTYPE)(dx, r, LOAD(X_DTYPE)(dy, r) - exp(LOAD(Y_DTYPE)(y, r)) * sum);
#else
  for (int r = t; r < reduce; r += GROUP) acc += LOAD(X_DTYPE)(dy, r) * LOAD(Y_DTYPE)(y, r);
  const float sum = group_sum(acc, parts);
  for (int r = t; r < reduce; r += GROUP)
    STORE(Z_DTYPE)(dx, r, LOAD(Y_DTYPE)(y, r) * (LOAD(X_DTYPE)(dy, r) - sum));
#endif
}
#endif
