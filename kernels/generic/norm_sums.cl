// Two sums a channel of x [N, C, S]: batch_norm_sums, batch_norm_grad_sums, norm_grad_params.
//
// Contract   x: X_DTYPE, dy: D_DTYPE (KIND 0: a stand-in), each [N,C,S].
//            KIND 0 (batch_norm_sums): d = x - shift[c]; sums of d and d d; out [2C+1] with the
//            number of elements a channel last.
//            KIND 1 (batch_norm_grad_sums): sums of dy and of dy v, v = (x - mean) rstd with mean
//            and rstd from sums f32[2C+1] and shift; out [2C], first [C], second [C].
//            KIND 2 (norm_grad_params): the same with stats f32[N,G,2] of group c / (C / G); out is
//            the sums of dy v [C], first the sums of dy [C].
//            Stage 1 writes partial sums f32[chunks,C,2], a chunk being `per` samples; fold adds
//            the chunks up. N may be 0: zeros.
// Defines    X_DTYPE D_DTYPE KIND; GROUP (group kernel). Needs storage.cl and vector.cl before it.
// Divisible  nothing.
// Tunables   lanes: VECTOR (vector.cl). group: GROUP, 64 to 512. column: LOCAL, the local size, 32 to
//            256. CHUNKS, 8 to 128: chunks at most; more give more processors work.
// Order      column, columns: sample by sample. lanes: VECTOR interleaved sums a sample, a fixed
//            tree; then the samples. group: strided partial sums, then a tree. Chunks in order.

#define LOAD8(T, p, i) (float8)(LOAD4(T)(p, i), LOAD4(T)(p, (i) + 4))

// What is taken off x and what the distance is multiplied with. p: shift or stats; q: sums.
static inline float2 centre_of(__global const float* p, __global const float* q, const int n,
                               const int c, const int C, const int G) {
#if KIND == 0
  return (float2)(p[c], 1.0f);
#elif KIND == 1
  const float count = q[2 * C];
  return (float2)(p[c] + (count > 0.0f ? q[c] / count : 0.0f), 1.0f);  // fold multiplies by rstd
#else
  return vload2((size_t)n * G + c / (C / G), p);
#endif
}

#if KIND == 0
#define FIRST(dy, d) (d)
#define SECOND(dy, d) ((d) * (d))
#define READ_DY(call) 0.0f
#else
#define FIRST(dy, d) (dy)
#define SECOND(dy, d) ((dy) * (d))
#define READ_DY(call) call
#endif

// Work-item (channel, chunk).
__kernel void norm_sums_generic_column(__global const TYPE(X_DTYPE)* x,
                                       __global const TYPE(D_DTYPE)* dy, __global const float* p,
                                       __global const float* q, __global float* partial,
                                       const int N, const int C, const int S, const int G,
                                       const int per) {
  const int c = (int)get_global_id(0);
  const int chunk = (int)get_global_id(1);
  if (c >= C) return;
  float a = 0, b = 0;
  for (int n = chunk * per; n < min(N, (chunk + 1) * per); ++n) {
    const float2 centre = centre_of(p, q, n, c, C, G);
    const size_t at = ((size_t)n * C + c) * S;
    float a_sample = 0, b_sample = 0;
    for (int s = 0; s < S; ++s) {
      const float d = (LOAD(X_DTYPE)(x, at + s) - centre.x) * centre.y;
      const float g = READ_DY(LOAD(D_DTYPE)(dy, at + s));
      a_sample += FIRST(g, d);
      b_sample += SECOND(g, d);
    }
    a += a_sample;
    b += b_sample;
  }
  vstore2((float2)(a, b), (size_t)chunk * C + c, partial);
}

// Work-item (eight channels, chunk) for S == 1; the last one's tail goes channel by channel.
__kernel void norm_sums_generic_columns(__global const TYPE(X_DTYPE)* x,
                                        __global const TYPE(D_DTYPE)* dy, __global const float* p,
                                        __global const float* q, __global float* partial,
                                        const int N, const int C, const int S, const int G,
                                        const int per) {
  const int first = 8 * (int)get_global_id(0);
  const int chunk = (int)get_global_id(1);
  const int begin = chunk * per, end = min(N, (chunk + 1) * per);
  partial += (size_t)chunk * C * 2;
  if (first + 8 <= C) {
    float8 a = 0, b = 0;
    float8 centre = 0, factor = 1;
#define LANE(k)                                             \
  {                                                         \
    const float2 one = centre_of(p, q, 0, first + k, C, G); \
    centre.s##k = one.x;                                    \
    factor.s##k = one.y;                                    \
  }
#define EACH8(M) M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7)
#if KIND != 2
    EACH8(LANE)
#endif
    for (int n = begin; n < end; ++n) {
      const size_t at = (size_t)n * C + first;
#if KIND == 2
      if (G == 1) {
        const float2 one = vload2(n, p);
        centre = (float8)(one.x);
        factor = (float8)(one.y);
      } else {
#define LANE_OF_SAMPLE(k)                                   \
  {                                                         \
    const float2 one = centre_of(p, q, n, first + k, C, G); \
    centre.s##k = one.x;                                    \
    factor.s##k = one.y;                                    \
  }
        EACH8(LANE_OF_SAMPLE)
      }
#endif
      const float8 d = (LOAD8(X_DTYPE, x, at) - centre) * factor;
      const float8 g = READ_DY(LOAD8(D_DTYPE, dy, at));
      a += FIRST(g, d);
      b += SECOND(g, d);
    }
#define PUT(k) vstore2((float2)(a.s##k, b.s##k), first + k, partial);
    EACH8(PUT)
    return;
  }
  for (int c = first; c < C; ++c) {
    float a = 0, b = 0;
    for (int n = begin; n < end; ++n) {
      const float2 centre = centre_of(p, q, n, c, C, G);
      const float d = (LOAD(X_DTYPE)(x, (size_t)n * C + c) - centre.x) * centre.y;
      const float g = READ_DY(LOAD(D_DTYPE)(dy, (size_t)n * C + c));
      a += FIRST(g, d);
      b += SECOND(g, d);
    }
    vstore2((float2)(a, b), c, partial);
  }
}

// Adds what `count` elements, a multiple of VECTOR, give to both sums.
static inline void add_vectors(__global const TYPE(X_DTYPE)* x, __global const TYPE(D_DTYPE)* dy,
                               const int count, const float2 centre, FLOATV* a, FLOATV* b) {
  for (int s = 0; s < count; s += VECTOR) {
    const FLOATV d = (LOADV(X_DTYPE, x, s) - centre.x) * centre.y;
    const FLOATV g = READ_DY(LOADV(D_DTYPE, dy, s));
    *a += FIRST(g, d);
    *b += SECOND(g, d);
  }
}

// Work-item (channel, chunk), vectors along S.
__kernel void norm_sums_generic_lanes(__global const TYPE(X_DTYPE)* x,
                                      __global const TYPE(D_DTYPE)* dy, __global const float* p,
                                      __global const float* q, __global float* partial, const int N,
                                      const int C, const int S, const int G, const int per) {
  const int c = (int)get_global_id(0);
  const int chunk = (int)get_global_id(1);
  const int whole = S & ~(VECTOR - 1);
  float a = 0, b = 0;
  for (int n = chunk * per; n < min(N, (chunk + 1) * per); ++n) {
    const float2 centre = centre_of(p, q, n, c, C, G);
    const size_t at = ((size_t)n * C + c) * S;
    FLOATV av = 0, bv = 0;
    add_vectors(x + at, dy + at, whole, centre, &av, &bv);
    float a_sample = sum_of(av), b_sample = sum_of(bv);
    for (int s = whole; s < S; ++s) {
      const float d = (LOAD(X_DTYPE)(x, at + s) - centre.x) * centre.y;
      const float g = READ_DY(LOAD(D_DTYPE)(dy, at + s));
      a_sample += FIRST(g, d);
      b_sample += SECOND(g, d);
    }
    a += a_sample;
    b += b_sample;
  }
  vstore2((float2)(a, b), (size_t)chunk * C + c, partial);
}

#ifdef GROUP
// Work-group (channel, chunk).
__kernel void norm_sums_generic_group(__global const TYPE(X_DTYPE)* x,
                                      __global const TYPE(D_DTYPE)* dy, __global const float* p,
                                      __global const float* q, __global float* partial, const int N,
                                      const int C, const int S, const int G, const int per) {
  __local float2 parts[GROUP];
  const int t = (int)get_local_id(0);
  const int c = (int)get_group_id(0);
  const int chunk = (int)get_group_id(1);
  const int begin = chunk * per;
  const int count = (min(N, begin + per) - begin) * S;
  float2 acc = 0;
  for (int j = t; j < count; j += GROUP) {
    const int sample = j / S;
    const int n = begin + sample;
    const float2 centre = centre_of(p, q, n, c, C, G);
    const size_t at = ((size_t)n * C + c) * S + (j - sample * S);
    const float d = (LOAD(X_DTYPE)(x, at) - centre.x) * centre.y;
    const float g = READ_DY(LOAD(D_DTYPE)(dy, at));
    acc += (float2)(FIRST(g, d), SECOND(g, d));
  }
  parts[t] = acc;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
    if (t < half_size) parts[t] += parts[t + half_size];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (t == 0) vstore2(parts[0], (size_t)chunk * C + c, partial);
}
#endif

// Writes the sums of channel c: .x of the first, .y of the second.
static inline void write_sums(float2 sum, __global const float* q, __global float* out,
                              __global float* first, __global float* second, const int c,
                              const int C, const int count, const float eps) {
#if KIND == 0
  out[c] = sum.x;
  out[C + c] = sum.y;
  if (c == 0) out[2 * C] = (float)count;
#elif KIND == 1
  const float n = q[2 * C];
  if (n > 0.0f) {
    const float d = q[c] / n;
    sum.y *= 1.0f / sqrt(fmax(q[C + c] / n - d * d, 0.0f) + eps);
  }
  out[c] = sum.x;
  out[C + c] = sum.y;
  first[c] = sum.x;
  second[c] = sum.y;
#else
  out[c] = sum.y;
  first[c] = sum.x;
#endif
}

__kernel void norm_sums_generic_fold(__global const float* partial, __global const float* q,
                                     __global float* out, __global float* first,
                                     __global float* second, const int C, const int chunks,
                                     const int count, const float eps) {
  const int c = (int)get_global_id(0);
  if (c >= C) return;
  float2 sum = 0;
  for (int chunk = 0; chunk < chunks; ++chunk) sum += vload2((size_t)chunk * C + c, partial);
  write_sums(sum, q, out, first, second, c, C, count, eps);
}
