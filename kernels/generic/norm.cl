// layer_norm, rms_norm, group_norm: statistics, forward and input gradient of rows.
//
// Contract   x seen as [N, G, L] with L = C / G * S: row (n, g) is normalised. Element j of the row
//            has the weight and bias of channel g * C / G + j / S; layer_norm and rms_norm have
//            G = 1 and S = 1. x: X_DTYPE, y, dx: Y_DTYPE, dy: D_DTYPE, weight, bias: f32, stats
//            f32[N,G,2]: mean (0 for RMS) and 1 / sqrt(variance + eps).
//            y = (x - mean) rstd w + b;  h = dy w, v = (x - mean) rstd,
//            dx = rstd (h - mean(h) - v mean(h v)); without mean(h) for RMS.
// Defines    X_DTYPE Y_DTYPE D_DTYPE; RMS (0/1); PLAIN: 1 if S is 1, so that weights lie as the
//            elements do; HAS_WEIGHT HAS_BIAS (0/1); GROUP (group kernels).
//            Needs storage.cl, vector.cl and, for groups, group_reduce.cl.
// Divisible  nothing.
// Tunables   item: VECTOR (vector.cl). group: GROUP, 64 to 512.
// Order      item: VECTOR interleaved sums in blocks of 1024 elements, a fixed tree, then the rest.
//            group: strided partial sums, then a tree. The mean first, then the squared distances.

#define BLOCK 1024

static inline float weight_at(__global const float* w, const int c) {
#if HAS_WEIGHT
  return w[c];
#else
  return 1.0f;
#endif
}
static inline float bias_at(__global const float* b, const int c) {
#if HAS_BIAS
  return b[c];
#else
  return 0.0f;
#endif
}
#if PLAIN && HAS_WEIGHT
#define WEIGHTV(w, c, i) VLOAD(0, (w) + (c) + (i))
#else
#define WEIGHTV(w, c, i) (FLOATV)(weight_at(w, c))
#endif
#if PLAIN && HAS_BIAS
#define BIASV(b, c, i) VLOAD(0, (b) + (c) + (i))
#else
#define BIASV(b, c, i) (FLOATV)(bias_at(b, c))
#endif
// A run of elements that share a weight, or the whole row of a plain one.
#if PLAIN
#define RUNS(L, S) 1
#define RUN(L, S) (L)
#define CHANNEL(first, run, i) ((first) + (i))
#define CHANNEL_OF(first, j, S) ((first) + (j))
#else
#define RUNS(L, S) ((L) / (S))
#define RUN(L, S) (S)
#define CHANNEL(first, run, i) ((first) + (run))
#define CHANNEL_OF(first, j, S) ((first) + (j) / (S))
#endif

// Mean and reciprocal deviation of one row.
static inline float2 row_stats(__global const TYPE(X_DTYPE)* x, const int L, const float eps) {
  const int whole = L & ~(VECTOR - 1);
  float mean = 0;
#if !RMS
  FLOATV total = 0;
  for (int begin = 0; begin < whole; begin += BLOCK) {
    const int end = min(begin + BLOCK, whole);
    FLOATV block = 0;
    for (int j = begin; j < end; j += VECTOR) block += LOADV(X_DTYPE, x, j);
    total += block;
  }
  mean = sum_of(total);
  for (int j = whole; j < L; ++j) mean += LOAD(X_DTYPE)(x, j);
  mean /= (float)L;
#endif
  FLOATV squares = 0;
  for (int begin = 0; begin < whole; begin += BLOCK) {
    const int end = min(begin + BLOCK, whole);
    FLOATV block = 0;
    for (int j = begin; j < end; j += VECTOR) {
      const FLOATV d = LOADV(X_DTYPE, x, j) - mean;
      block += d * d;
    }
    squares += block;
  }
  float var = sum_of(squares);
  for (int j = whole; j < L; ++j) {
    const float d = LOAD(X_DTYPE)(x, j) - mean;
    var += d * d;
  }
  return (float2)(mean, 1.0f / sqrt(var / (float)L + eps));
}

__kernel void norm_generic_stats_item(__global const TYPE(X_DTYPE)* x, __global float* stats,
                                      const int L, const float eps) {
  const int row = (int)get_global_id(0);
  vstore2(row_stats(x + (size_t)row * L, L, eps), row, stats);
}

// One work-item a row.
__kernel void norm_generic_item(__global const TYPE(X_DTYPE)* x, __global const float* weight,
                                __global const float* bias, __global TYPE(Y_DTYPE)* y, const int C,
                                const int S, const int G, const int L, const float eps) {
  const int row = (int)get_global_id(0);
  const int first = (row % G) * (C / G);
  x += (size_t)row * L;
  y += (size_t)row * L;
  const float2 st = row_stats(x, L, eps);
  for (int run = 0; run < RUNS(L, S); ++run) {
    const int at = run * RUN(L, S);
    const int whole = RUN(L, S) & ~(VECTOR - 1);
    for (int i = 0; i < whole; i += VECTOR) {
      const FLOATV v = (LOADV(X_DTYPE, x, at + i) - st.x) * st.y;
      STOREV(Y_DTYPE, y, at + i, v * WEIGHTV(weight, first + run, i) + BIASV(bias, first + run, i));
    }
    for (int i = whole; i < RUN(L, S); ++i) {
      const int c = CHANNEL(first, run, i);
      const float v = (LOAD(X_DTYPE)(x, at + i) - st.x) * st.y;
      STORE(Y_DTYPE)(y, at + i, v * weight_at(weight, c) + bias_at(bias, c));
    }
  }
}

__kernel void norm_generic_grad_item(__global const TYPE(D_DTYPE)* dy,
                                     __global const TYPE(X_DTYPE)* x, __global const float* stats,
                                     __global const float* weight, __global TYPE(Y_DTYPE)* dx,
                                     const int C, const int S, const int G, const int L) {
  const int row = (int)get_global_id(0);
  const int first = (row % G) * (C / G);
  const float2 st = vload2(row, stats);
  x += (size_t)row * L;
  dy += (size_t)row * L;
  dx += (size_t)row * L;
  FLOATV sums = 0, dots = 0;
  float sum = 0, dot_sum = 0;
  for (int run = 0; run < RUNS(L, S); ++run) {
    const int at = run * RUN(L, S);
    const int whole = RUN(L, S) & ~(VECTOR - 1);
    for (int begin = 0; begin < whole; begin += BLOCK) {
      const int end = min(begin + BLOCK, whole);
      FLOATV block = 0, dot_block = 0;
      for (int i = begin; i < end; i += VECTOR) {
        const FLOATV h = LOADV(D_DTYPE, dy, at + i) * WEIGHTV(weight, first + run, i);
        block += h;
        dot_block += h * ((LOADV(X_DTYPE, x, at + i) - st.x) * st.y);
      }
      sums += block;
      dots += dot_block;
    }
    for (int i = whole; i < RUN(L, S); ++i) {
      const float h = LOAD(D_DTYPE)(dy, at + i) * weight_at(weight, CHANNEL(first, run, i));
      sum += h;
      dot_sum += h * ((LOAD(X_DTYPE)(x, at + i) - st.x) * st.y);
    }
  }
  const float a = RMS ? 0.0f : (sum_of(sums) + sum) / (float)L;
  const float b = (sum_of(dots) + dot_sum) / (float)L;
  for (int run = 0; run < RUNS(L, S); ++run) {
    const int at = run * RUN(L, S);
    const int whole = RUN(L, S) & ~(VECTOR - 1);
    for (int i = 0; i < whole; i += VECTOR) {
      const FLOATV h = LOADV(D_DTYPE, dy, at + i) * WEIGHTV(weight, first + run, i);
      const FLOATV v = (LOADV(X_DTYPE, x, at + i) - st.x) * st.y;
      STOREV(Y_DTYPE, dx, at + i, st.y * (h - a - v * b));
    }
    for (int i = whole; i < RUN(L, S); ++i) {
      const float h = LOAD(D_DTYPE)(dy, at + i) * weight_at(weight, CHANNEL(first, run, i));
      const float v = (LOAD(X_DTYPE)(x, at + i) - st.x) * st.y;
      STORE(Y_DTYPE)(dx, at + i, st.y * (h - a - v * b));
    }
  }
}

#ifdef GROUP
static inline float2 group_stats(__global const TYPE(X_DTYPE)* x, const int L, const float eps,
                                 __local float* parts) {
  const int t = (int)get_local_id(0);
  float acc = 0, mean = 0;
#if !RMS
  for (int j = t; j < L; j += GROUP) acc += LOAD(X_DTYPE)(x, j);
  mean = group_sum(acc, parts) / (float)L;
  acc = 0;
#endif
  for (int j = t; j < L; j += GROUP) {
    const float d = LOAD(X_DTYPE)(x, j) - mean;
    acc += d * d;
  }
  return (float2)(mean, 1.0f / sqrt(group_sum(acc, parts) / (float)L + eps));
}

__kernel void norm_generic_stats_group(__global const TYPE(X_DTYPE)* x, __global float* stats,
                                       const int L, const float eps) {
  __local float parts[GROUP];
  const int row = (int)get_group_id(0);
  const float2 st = group_stats(x + (size_t)row * L, L, eps, parts);
  if (get_local_id(0) == 0) vstore2(st, row, stats);
}

// One work-group a row.
__kernel void norm_generic_group(__global const TYPE(X_DTYPE)* x, __global const float* weight,
                                 __global const float* bias, __global TYPE(Y_DTYPE)* y,
                                 const int C, const int S, const int G, const int L,
                                 const float eps) {
  __local float parts[GROUP];
  const int row = (int)get_group_id(0);
  const int first = (row % G) * (C / G);
  x += (size_t)row * L;
  y += (size_t)row * L;
  const float2 st = group_stats(x, L, eps, parts);
  for (int j = (int)get_local_id(0); j < L; j += GROUP) {
    const int c = CHANNEL_OF(first, j, S);
    const float v = (LOAD(X_DTYPE)(x, j) - st.x) * st.y;
    STORE(Y_DTYPE)(y, j, v * weight_at(weight, c) + bias_at(bias, c));
  }
}

__kernel void norm_generic_grad_group(__global const TYPE(D_DTYPE)* dy,
                                      __global const TYPE(X_DTYPE)* x, __global const float* stats,
                                      __global const float* weight, __global TYPE(Y_DTYPE)* dx,
                                      const int C, const int S, const int G, const int L) {
  __local float parts[GROUP];
  const int row = (int)get_group_id(0);
  const int t = (int)get_local_id(0);
  const int first = (row % G) * (C / G);
  const float2 st = vload2(row, stats);
  x += (size_t)row * L;
  dy += (size_t)row * L;
  dx += (size_t)row * L;
  float sum = 0, dot_sum = 0;
  for (int j = t; j < L; j += GROUP) {
    const float h = LOAD(D_DTYPE)(dy, j) * weight_at(weight, CHANNEL_OF(first, j, S));
    sum += h;
    dot_sum += h * ((LOAD(X_DTYPE)(x, j) - st.x) * st.y);
  }
  const float a = RMS ? 0.0f : group_sum(sum, parts) / (float)L;
  const float b = group_sum(dot_sum, parts) / (float)L;
  for (int j = t; j < L; j += GROUP) {
    const float h = LOAD(D_DTYPE)(dy, j) * weight_at(weight, CHANNEL_OF(first, j, S));
    const float v = (LOAD(X_DTYPE)(x, j) - st.x) * st.y;
    STORE(Y_DTYPE)(dx, j, st.y * (h - a - v * b));
  }
}
#endif
