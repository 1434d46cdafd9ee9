// softmax, log_softmax and their gradients over the middle of [outer, reduce, inner].
//
// Contract   x, y, dy, dx: f32. softmax: y = exp(x - max) / sum;
//            log_softmax: y = x - max - log sum;
//            gradients: dx = y (dy - sum(dy y)) and dx = dy - exp(y) sum(dy).
// Defines    LOG: 1 for the log forms, else 0; GROUP (group kernels).
// Divisible  nothing.
// Order      column: in order. lanes: eight interleaved sums, a fixed tree, then the rest.
//            group: strided partial sums, then a tree.

__kernel void softmax_generic_column(__global const float* x, __global float* y, const int results,
                                     const int reduce, const int inner) {
  const int i = (int)get_global_id(0);
  if (i >= results) return;
  const int o = i / inner;
  const size_t base = (size_t)o * reduce * inner + (i - o * inner);
  x += base;
  y += base;
  float top = -INFINITY;
  for (int r = 0; r < reduce; ++r) top = fmax(top, x[(size_t)r * inner]);
  float sum = 0;
  for (int r = 0; r < reduce; ++r) {
    const float e = exp(x[(size_t)r * inner] - top);
    sum += e;
#if !LOG
    y[(size_t)r * inner] = e;
#endif
  }
#if LOG
  const float log_sum = log(sum);
  for (int r = 0; r < reduce; ++r) y[(size_t)r * inner] = x[(size_t)r * inner] - top - log_sum;
#else
  for (int r = 0; r < reduce; ++r) y[(size_t)r * inner] /= sum;
#endif
}

__kernel void softmax_grad_generic_column(__global const float* dy, __global const float* y,
                                          __global float* dx, const int results, const int reduce,
                                          const int inner) {
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
    sum += dy[at];
#else
    sum += dy[at] * y[at];
#endif
  }
  for (int r = 0; r < reduce; ++r) {
    const size_t at = (size_t)r * inner;
#if LOG
    dx[at] = dy[at] - exp(y[at]) * sum;
#else
    dx[at] = y[at] * (dy[at] - sum);
#endif
  }
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
__kernel void softmax_generic_lanes(__global const float* x, __global float* y, const int reduce) {
  const size_t base = (size_t)get_global_id(0) * reduce;
  x += base;
  y += base;
  const int whole = reduce & ~7;
  float8 tops = (float8)(-INFINITY);
  for (int r = 0; r < whole; r += 8) tops = fmax(tops, vload8(0, x + r));
  float top = max8(tops);
  for (int r = whole; r < reduce; ++r) top = fmax(top, x[r]);
  float8 sums = 0;
  for (int r = 0; r < whole; r += 8) {
    const float8 e = exp(vload8(0, x + r) - top);
    sums += e;
#if !LOG
    vstore8(e, 0, y + r);
#endif
  }
  float sum = sum8(sums);
  for (int r = whole; r < reduce; ++r) {
    const float e = exp(x[r] - top);
    sum += e;
#if !LOG
    y[r] = e;
#endif
  }
#if LOG
  const float log_sum = log(sum);
  for (int r = 0; r < whole; r += 8) vstore8(vload8(0, x + r) - top - log_sum, 0, y + r);
  for (int r = whole; r < reduce; ++r) y[r] = x[r] - top - log_sum;
#else
  for (int r = 0; r < whole; r += 8) vstore8(vload8(0, y + r) / sum, 0, y + r);
  for (int r = whole; r < reduce; ++r) y[r] /= sum;
#endif
}

#ifdef GROUP
static inline float group_sum(const float v, __local float* parts) {
  const int t = (int)get_local_id(0);
  barrier(CLK_LOCAL_MEM_FENCE);  // what lay in parts before has been read
  parts[t] = v;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
    if (t < half_size) parts[t] += parts[t + half_size];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  return parts[0];
}
static inline float group_max(const float v, __local float* parts) {
  const int t = (int)get_local_id(0);
  parts[t] = v;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
    if (t < half_size) parts[t] = fmax(parts[t], parts[t + half_size]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  return parts[0];
}

// One work-group a row (inner == 1).
__kernel void softmax_generic_group(__global const float* x, __global float* y, const int reduce) {
  __local float parts[GROUP];
  const int t = (int)get_local_id(0);
  const size_t base = (size_t)get_group_id(0) * reduce;
  x += base;
  y += base;
  float acc = -INFINITY;
  for (int r = t; r < reduce; r += GROUP) acc = fmax(acc, x[r]);
  const float top = group_max(acc, parts);
  acc = 0;
  for (int r = t; r < reduce; r += GROUP) acc += exp(x[r] - top);
  const float sum = group_sum(acc, parts);
#if LOG
  const float log_sum = log(sum);
  for (int r = t; r < reduce; r += GROUP) y[r] = x[r] - top - log_sum;
#else
  for (int r = t; r < reduce; r += GROUP) y[r] = exp(x[r] - top) / sum;
#endif
}

__kernel void softmax_grad_generic_group(__global const float* dy, __global const float* y,
                                         __global float* dx, const int reduce) {
  __local float parts[GROUP];
  const int t = (int)get_local_id(0);
  const size_t base = (size_t)get_group_id(0) * reduce;
  dy += base;
  y += base;
  dx += base;
  float acc = 0;
#if LOG
  for (int r = t; r < reduce; r += GROUP) acc += dy[r];
  const float sum = group_sum(acc, parts);
  for (int r = t; r < reduce; r += GROUP) dx[r] = dy[r] - exp(y[r]) * sum;
#else
  for (int r = t; r < reduce; r += GROUP) acc += dy[r] * y[r];
  const float sum = group_sum(acc, parts);
  for (int r = t; r < reduce; r += GROUP) dx[r] = y[r] * (dy[r] - sum);
#endif
}
#endif
