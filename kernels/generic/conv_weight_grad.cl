// Gradient of a convolution's weights: dw[m, q] = sum over images and positions of dy[m] times the
// element of x that weight q = (channel, tap) sees there.
//
// Contract   x: X_DTYPE [N,C,H,W]; dy: D_DTYPE [N,O,OH,OW]; dw: Y_DTYPE [O, C/groups, KH, KW];
//            partial: f32 [splits, O, pitch], pitch >= C/groups * KH * KW. sizes and window as in
//            conv_axis.cl. Split s takes an equal share of the images (panel) or positions (tile).
//            conv2d_grad_weight_generic_sum then adds the splits up. `group` needs no scratch.
// Defines    KIND: 0 panel for CPUs; 1 tile for GPUs (needs tile.cl before it); 2 one group of
//            GROUP work-items an element, for few channels.
// Divisible  nothing.
// Order      positions in order within a split, then the splits in order; group: strided partial
//            sums, then a tree. No atomics: the same bits every run.
// Needs storage.cl and, for KIND 2, group_reduce.cl before it.

#define GROUPS sizes.s7
#define CHANNELS (sizes.s1 / GROUPS)
#define FILTERS (sizes.s4 / GROUPS)
#define IN_PLANE (sizes.s2 * sizes.s3)
#define POSITIONS (sizes.s5 * sizes.s6)

__kernel void conv2d_grad_weight_generic_sum(__global const float* partial,
                                             __global TYPE(Y_DTYPE)* dw, const int total,
                                             const int depth, const int pitch, const int split,
                                             const int splits) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  const int m = i / depth;
  partial += (size_t)m * pitch + (i - m * depth);
  float sum = 0;
  for (int s = 0; s < splits; ++s) sum += partial[(size_t)s * split];
  STORE(Y_DTYPE)(dw, i, sum);
}

#if KIND == 0
#define CHUNK 64
#define EACH_ROW(M) M(0) M(1) M(2) M(3) M(4) M(5)

// Copies what the 16 weights from q0 on see at positions first .. first + used into rows of 16.
static inline void fill_rows(float* rows, __global const TYPE(X_DTYPE)* x, const int8 sizes,
                             const int8 window, const int q0, const int weights, const int first,
                             const int used) {
  for (int j = 0; j < 16; ++j) {
    const int q = q0 + j;
    float* to = rows + j;
    if (q >= weights) {
      for (int k = 0; k < used; ++k) to[k * 16] = 0;
      continue;
    }
    const int tap = q % (window.s0 * window.s1);
    const int top = tap / window.s1 * window.s6 - window.s4;
    const int left = tap % window.s1 * window.s7 - window.s5;
    __global const TYPE(X_DTYPE)* plane = x + q / (window.s0 * window.s1) * IN_PLANE;
    int p = first % sizes.s6;
    int h = first / sizes.s6 * window.s2 + top;
    for (int k = 0; k < used; ++k) {
      const int w = p * window.s3 + left;
      const int inside = h >= 0 && h < sizes.s2 && w >= 0 && w < sizes.s3;
      to[k * 16] = inside ? LOAD(X_DTYPE)(plane, h * sizes.s3 + w) : 0.0f;
      if (++p == sizes.s6) {
        p = 0;
        h += window.s2;
      }
    }
  }
}

// Global size (panels of 16 weights, splits, groups); pitch: 16 a panel.
__kernel void conv2d_grad_weight_generic_panel(__global const TYPE(X_DTYPE)* x,
                                               __global const TYPE(D_DTYPE)* dy,
                                               __global float* partial, const int8 sizes,
                                               const int8 window) {
  const int q0 = 16 * (int)get_global_id(0);
  const int group = (int)get_global_id(2);
  const int split = (int)get_global_id(1), splits = (int)get_global_size(1);
  const int filters = FILTERS, channels = CHANNELS, positions = POSITIONS;
  const int pitch = 16 * (int)get_global_size(0);
  const int weights = channels * window.s0 * window.s1;
  float rows[CHUNK * 16];
  partial += ((size_t)split * sizes.s4 + group * filters) * pitch + q0;
  for (int m = 0; m < filters; ++m) vstore16((float16)(0.0f), 0, partial + (size_t)m * pitch);
  const int end = (int)((long)sizes.s0 * (split + 1) / splits);
  for (int n = (int)((long)sizes.s0 * split / splits); n < end; ++n) {
    __global const TYPE(X_DTYPE)* image = x + (size_t)(n * GROUPS + group) * channels * IN_PLANE;
    __global const TYPE(D_DTYPE)* maps = dy + (size_t)(n * GROUPS + group) * filters * positions;
    for (int first = 0; first < positions; first += CHUNK) {
      const int used = min(CHUNK, positions - first);
      fill_rows(rows, image, sizes, window, q0, weights, first, used);
      for (int m0 = 0; m0 < filters; m0 += 6) {
#define START(r)                                                                         \
  __global const TYPE(D_DTYPE)* d##r = maps + min(m0 + r, filters - 1) * positions + first; \
  __global float* out##r = partial + (size_t)min(m0 + r, filters - 1) * pitch;           \
  float8 low##r = vload8(0, out##r), high##r = vload8(1, out##r);
        EACH_ROW(START)
#undef START
        const float* b = rows;
        for (int k = 0; k < used; ++k) {
          const float8 b0 = vload8(0, b), b1 = vload8(1, b);
#define ADD(r)                              \
  {                                         \
    const float d = LOAD(D_DTYPE)(d##r, k); \
    low##r += d * b0;                       \
    high##r += d * b1;                      \
  }
          EACH_ROW(ADD)
#undef ADD
          b += 16;
        }
#define STORE_ROW(r)             \
  if (m0 + r < filters) {        \
    vstore8(low##r, 0, out##r);  \
    vstore8(high##r, 1, out##r); \
  }
        EACH_ROW(STORE_ROW)
#undef STORE_ROW
      }
    }
  }
}

#elif KIND == 1
// Group (x, y, z): weights SIDE * x ..., filters SIDE * y ... of group z % groups, split
// z / groups of `share` positions.
__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void conv2d_grad_weight_generic_tile(
    __global const TYPE(X_DTYPE)* x, __global const TYPE(D_DTYPE)* dy, __global float* partial,
    const int8 sizes, const int8 window, const int share) {
  __local VEC a_tile[DEPTH * PITCH];
  __local VEC b_tile[DEPTH * PITCH];
  __local float* a_flat = (__local float*)a_tile;
  __local float* b_flat = (__local float*)b_tile;
  const int lx = (int)get_local_id(0);
  const int ly = (int)get_local_id(1);
  const int t = ly * 16 + lx;
  const int group = (int)get_group_id(2) % GROUPS;
  const int split = (int)get_group_id(2) / GROUPS;
  const int q0 = SIDE * (int)get_group_id(0);
  const int m0 = SIDE * (int)get_group_id(1);
  const int filters = FILTERS, channels = CHANNELS, positions = POSITIONS;
  const int taps = window.s0 * window.s1;
  const int weights = channels * taps;
  const int begin = split * share;
  const int end = min(begin + share, sizes.s0 * positions);

  // The rows of the tile that this work-item fills are COLUMNS apart; so their weights are fixed.
#define COLUMNS (256 / DEPTH)
  int base[SIDE / COLUMNS], top[SIDE / COLUMNS], left[SIDE / COLUMNS];
#pragma unroll
  for (int i = 0; i < SIDE / COLUMNS; ++i) {
    const int q = q0 + t / DEPTH + i * COLUMNS;
    const int c = q / taps, tap = q - c * taps;
    base[i] = c * IN_PLANE;
    top[i] = q < weights ? tap / window.s1 * window.s6 - window.s4 : INT_MIN / 2;
    left[i] = tap % window.s1 * window.s7 - window.s5;
  }
  float sum[T][T];
  CLEAR(sum);
  for (int k0 = begin; k0 < end; k0 += DEPTH) {
    const int k = k0 + t % DEPTH;
    const int inside = k < end;
    const int image = k / positions, p = k - image * positions;
    const int row = p / sizes.s6;
    const int h0 = row * window.s2, w0 = (p - row * sizes.s6) * window.s3;
    const size_t maps = (size_t)(image * GROUPS + group);
    __global const TYPE(D_DTYPE)* d = dy + maps * filters * positions + p;
    __global const TYPE(X_DTYPE)* from = x + maps * channels * IN_PLANE;
#pragma unroll
    for (int i = 0; i < SIDE / COLUMNS; ++i) {
      const int at = t % DEPTH * PITCH * W + t / DEPTH + i * COLUMNS;
      const int m = m0 + t / DEPTH + i * COLUMNS;
      a_flat[at] = inside && m < filters ? LOAD(D_DTYPE)(d, m * positions) : 0.0f;
      const int h = h0 + top[i], w = w0 + left[i];
      const int seen = inside && (uint)h < (uint)sizes.s2 && (uint)w < (uint)sizes.s3;
      b_flat[at] = seen ? LOAD(X_DTYPE)(from, base[i] + h * sizes.s3 + w) : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    MULTIPLY(sum, a_tile, b_tile);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  partial += ((size_t)split * sizes.s4 + group * filters) * weights;
#pragma unroll
  for (int i = 0; i < T; ++i) {
    const int m = m0 + TILE_PLACE(i, ly);
    if (m >= filters) continue;
#pragma unroll
    for (int j = 0; j < T; ++j) {
      const int q = q0 + TILE_PLACE(j, lx);
      if (q < weights) partial[(size_t)m * weights + q] = sum[i][j];
    }
  }
}

#else
__kernel void conv2d_grad_weight_generic_group(__global const TYPE(X_DTYPE)* x,
                                               __global const TYPE(D_DTYPE)* dy,
                                               __global TYPE(Y_DTYPE)* dw, const int8 sizes,
                                               const int8 window) {
  __local float parts[GROUP];
  const int t = (int)get_local_id(0);
  const int i = (int)get_group_id(0);
  const int positions = POSITIONS, taps = window.s0 * window.s1, channels = CHANNELS;
  const int m = i / (channels * taps);
  const int c = m / FILTERS * channels + i / taps % channels;
  const int top = i % taps / window.s1 * window.s6 - window.s4;
  const int left = i % window.s1 * window.s7 - window.s5;
  float sum = 0;
  for (int k = t; k < sizes.s0 * positions; k += GROUP) {
    const int image = k / positions, p = k - image * positions;
    const int row = p / sizes.s6;
    const int h = row * window.s2 + top;
    const int w = (p - row * sizes.s6) * window.s3 + left;
    if (h < 0 || h >= sizes.s2 || w < 0 || w >= sizes.s3) continue;
    sum += LOAD(D_DTYPE)(dy, (size_t)(image * sizes.s4 + m) * positions + p) *
           LOAD(X_DTYPE)(x, (size_t)(image * sizes.s1 + c) * IN_PLANE + h * sizes.s3 + w);
  }
  const float total = group_sum(sum, parts);
  if (t == 0) STORE(Y_DTYPE)(dw, i, total);
}
#endif
