// batch_norm, its input gradient, batch_norm_infer and batch_norm_running.
//
// Contract   x [N,C,S]: X_DTYPE; y, dx: Y_DTYPE; dy: D_DTYPE; the rest f32. sums [2C+1]: a
//            channel's S1 = sum(x - shift), S2 = sum((x - shift)^2), and last the count n.
//            mean = shift + S1 / n, var = max(S2 / n - (S1 / n)^2, 0); n == 0: shift and 0.
//            y = (x - mean) rstd w + b; v = (x - mean) rstd,
//            dx = w rstd (dy - total[c] / n - v total[C + c] / n).
//            INFER: p is the mean, q the variance of a channel.
//            running: mean' = shift + momentum S1 / n; variance towards var n / (n - 1); a count
//            below 1 leaves both, below 2 the variance.
// Defines    X_DTYPE Y_DTYPE D_DTYPE; INFER (0/1). Needs storage.cl and vector.cl before it.
// Divisible  nothing. flat: one work-item an element. row: one work-item (n, c), vectors along S.
// Tunables   row: VECTOR (vector.cl). flat: LOCAL, the local size, 64 to 512.
// Order      none: one element each.



static inline float2 channel_stats(__global const float* p, __global const float* q, const int c,
                                   const int C, const float eps) {
#if INFER
  return (float2)(p[c], 1.0f / sqrt(q[c] + eps));
#else
  const float n = q[2 * C];
  const float d = n > 0.0f ? q[c] / n : 0.0f;
  const float var = n > 0.0f ? fmax(q[C + c] / n - d * d, 0.0f) : 0.0f;
  return (float2)(p[c] + d, 1.0f / sqrt(var + eps));
#endif
}

__kernel void batch_norm_generic_flat(__global const TYPE(X_DTYPE)* x, __global const float* p,
                                      __global const float* q, __global const float* weight,
                                      __global const float* bias, __global TYPE(Y_DTYPE)* y,
                                      const int n, const int C, const int S, const float eps) {
  const int i = (int)get_global_id(0);
  if (i >= n) return;
  const int c = (i / S) % C;
  const float2 st = channel_stats(p, q, c, C, eps);
  STORE(Y_DTYPE)(y, i, (LOAD(X_DTYPE)(x, i) - st.x) * st.y * weight[c] + bias[c]);
}

__kernel void batch_norm_generic_row(__global const TYPE(X_DTYPE)* x, __global const float* p,
                                     __global const float* q, __global const float* weight,
                                     __global const float* bias, __global TYPE(Y_DTYPE)* y,
                                     const int C, const int S, const float eps) {
  const int row = (int)get_global_id(0);
  const int c = row % C;
  const float2 st = channel_stats(p, q, c, C, eps);
  const float w = weight[c], b = bias[c];
  x += (size_t)row * S;
  y += (size_t)row * S;
  const int whole = S & ~(VECTOR - 1);
  for (int s = 0; s < whole; s += VECTOR) {
    STOREV(Y_DTYPE, y, s, (LOADV(X_DTYPE, x, s) - st.x) * st.y * w + b);
  }
  for (int s = whole; s < S; ++s) STORE(Y_DTYPE)(y, s, (LOAD(X_DTYPE)(x, s) - st.x) * st.y * w + b);
}

__kernel void batch_norm_grad_generic_flat(__global const TYPE(D_DTYPE)* dy,
                                           __global const TYPE(X_DTYPE)* x,
                                           __global const float* q, __global const float* p,
                                           __global const float* weight,
                                           __global const float* total, __global TYPE(Y_DTYPE)* dx,
                                           const int n, const int C, const int S, const float eps) {
  const int i = (int)get_global_id(0);
  if (i >= n) return;
  const int c = (i / S) % C;
  const float2 st = channel_stats(p, q, c, C, eps);
  const float count = q[2 * C];
  const float inv = count > 0.0f ? 1.0f / count : 0.0f;
  const float v = (LOAD(X_DTYPE)(x, i) - st.x) * st.y;
  const float d = LOAD(D_DTYPE)(dy, i) - total[c] * inv - v * (total[C + c] * inv);
  STORE(Y_DTYPE)(dx, i, weight[c] * st.y * d);
}

__kernel void batch_norm_grad_generic_row(__global const TYPE(D_DTYPE)* dy,
                                          __global const TYPE(X_DTYPE)* x, __global const float* q,
                                          __global const float* p, __global const float* weight,
                                          __global const float* total, __global TYPE(Y_DTYPE)* dx,
                                          const int C, const int S, const float eps) {
  const int row = (int)get_global_id(0);
  const int c = row % C;
  const float2 st = channel_stats(p, q, c, C, eps);
  const float count = q[2 * C];
  const float inv = count > 0.0f ? 1.0f / count : 0.0f;
  const float a = total[c] * inv, b = total[C + c] * inv, factor = weight[c] * st.y;
  x += (size_t)row * S;
  dy += (size_t)row * S;
  dx += (size_t)row * S;
  const int whole = S & ~(VECTOR - 1);
  for (int s = 0; s < whole; s += VECTOR) {
    const FLOATV v = (LOADV(X_DTYPE, x, s) - st.x) * st.y;
    STOREV(Y_DTYPE, dx, s, factor * (LOADV(D_DTYPE, dy, s) - a - v * b));
  }
  for (int s = whole; s < S; ++s) {
    const float v = (LOAD(X_DTYPE)(x, s) - st.x) * st.y;
    STORE(Y_DTYPE)(dx, s, factor * (LOAD(D_DTYPE)(dy, s) - a - v * b));
  }
}

__kernel void batch_norm_generic_running(__global const float* sums, __global const float* shift,
                                         __global const float* var, __global float* new_mean,
                                         __global float* new_var, const int C,
                                         const float momentum) {
  const int c = (int)get_global_id(0);
  if (c >= C) return;
  const float n = sums[2 * C];
  const float d = n >= 1.0f ? sums[c] / n : 0.0f;
  new_mean[c] = shift[c] + momentum * d;
  if (n >= 2.0f) {
    const float unbiased = fmax(sums[C + c] / n - d * d, 0.0f) * (n / (n - 1.0f));
    new_var[c] = var[c] + momentum * (unbiased - var[c]);
  } else {
    new_var[c] = var[c];
  }
}
