// Gradient of a convolution's weights as a product over all positions of all images: x and dy are
// first laid out position by position, blocks of channels together. A work-item (tap, block of WIDTH
// channels of x) then copies what its tap sees at CHUNK positions, and multiplies that with blocks of
// TILE channels of dy.
//
// Contract   interleave: x [N, groups * channels, S] to x_rows f32 [groups, blocks, N * S, WIDTH] and
//            dy likewise to dy_rows, blocks of TILE, each padded with zeros; global (groups * blocks
//            of x, which are x_blocks, and of dy, N).
//            product: partial: f32 [splits, groups,
//            taps, blocks of channels, filters, WIDTH]; global (blocks of channels, splits * taps,
//            groups), split s takes the positions from s * share on.
//            sum: partial to dw, Y_DTYPE [O, C/groups, KH, KW]; global (groups * ceil(filters /
//            SUM_FILTERS), blocks of channels).
//            sizes and window as in conv_axis.cl. A tap that sees nothing but padding is not
//            multiplied, and not read in partial.
// Defines    X_DTYPE, DY_DTYPE (interleave), Y_DTYPE (sum), SUM_FILTERS (sum), TAPS: KH * KW (product, sum).
// Divisible  nothing.
// Tunables   VECTOR (vector.cl), VECTORS, TILE (panel.cl). CHUNK: 64, 128 or 256. UNROLL: 1, 2 or 4
//            positions. SPLITS: 1 to 16.
// Order      positions in order within a split, then the splits in order.
// Needs storage.cl, conv_axis.cl, vector.cl and panel.cl before it.

#define CHANNELS (sizes.s1 / GROUPS)
#define FILTERS (sizes.s4 / GROUPS)

#ifdef X_DTYPE
// Lays out one block of `used` channels of an image from source on.
#define DEFINE_INTERLEAVE(NAME, T, BLOCK)                                                         \
  static inline void NAME(__global const TYPE(T)* source, __global float* rows, const int used,   \
                          const int size) {                                                       \
    int s = 0;                                                                                    \
    for (; BLOCK % 4 == 0 && used == BLOCK && s + 4 <= size; s += 4) {                            \
      _Pragma("unroll") for (int r = 0; r + 4 <= BLOCK; r += 4) {                                 \
        __global const TYPE(T)* from = source + (size_t)r * size + s;                             \
        __global float* to = rows + (size_t)s * BLOCK + r;                                        \
        const float4 a = LOAD4(T)(from, 0), b = LOAD4(T)(from, size);                             \
        const float4 c = LOAD4(T)(from, 2 * size), d = LOAD4(T)(from, 3 * size);                  \
        vstore4((float4)(a.x, b.x, c.x, d.x), 0, to);                                             \
        vstore4((float4)(a.y, b.y, c.y, d.y), 0, to + BLOCK);                                     \
        vstore4((float4)(a.z, b.z, c.z, d.z), 0, to + 2 * BLOCK);                                 \
        vstore4((float4)(a.w, b.w, c.w, d.w), 0, to + 3 * BLOCK);                                 \
      }                                                                                           \
    }                                                                                             \
    for (; s < size; ++s)                                                                         \
      for (int r = 0; r < BLOCK; ++r)                                                             \
        rows[(size_t)s * BLOCK + r] = r < used ? LOAD(T)(source, (size_t)r * size + s) : 0.0f;    \
  }
DEFINE_INTERLEAVE(interleave_x, X_DTYPE, WIDTH)
DEFINE_INTERLEAVE(interleave_dy, DY_DTYPE, TILE)

// The channels of block `at` and where they are in image n, of `groups` groups of `channels`.
static inline size_t block_of(const int at, const int block, const int groups, const int channels,
                              const int n, int* used) {
  const int blocks = (channels + block - 1) / block, group = at / blocks;
  const int first = (at - group * blocks) * block;
  *used = min(block, channels - first);
  return ((size_t)n * groups + group) * channels + first;
}

__kernel void conv_cpu_interleave(__global const TYPE(X_DTYPE)* x, __global const TYPE(DY_DTYPE)* dy,
                                  __global float* x_rows, __global float* dy_rows,
                                  const int8 sizes, const int x_blocks) {
  const int at = (int)get_global_id(0), n = (int)get_global_id(1);
  int used;
  if (at < x_blocks) {
    const int size = sizes.s2 * sizes.s3;
    const size_t first = block_of(at, WIDTH, GROUPS, CHANNELS, n, &used);
    interleave_x(x + first * size, x_rows + ((size_t)at * sizes.s0 + n) * size * WIDTH, used, size);
  } else {
    const int size = sizes.s5 * sizes.s6, block = at - x_blocks;
    const size_t first = block_of(block, TILE, GROUPS, FILTERS, n, &used);
    interleave_dy(dy + first * size, dy_rows + ((size_t)block * sizes.s0 + n) * size * TILE, used,
                  size);
  }
}
#else

static inline int sees_something(const int8 sizes, const int8 window, const int tap) {
  const int th = tap / KERNEL_W, tw = tap - th * KERNEL_W;
  return sees(height_axis(sizes, window, 0), th) && sees(width_axis(sizes, window, 0), tw);
}

// Copies what the tap sees at `used` positions from `first` on; zeros where that is padding.
static inline void fill_rows(float* rows, __global const float* x_rows, const int8 sizes,
                             const int8 window, const int tap, const int first, const int used) {
  const int top = tap / KERNEL_W * window.s6 - window.s4;
  const int left = tap % KERNEL_W * window.s7 - window.s5;
  const int line = first / sizes.s6;
  int ow = first - line * sizes.s6, n = line / sizes.s5, oh = line - n * sizes.s5;
  for (int k = 0; k < used; ++k) {
    const int h = oh * STRIDE_H + top, w = ow * STRIDE_W + left;
    const int inside = h >= 0 && h < sizes.s2 && w >= 0 && w < sizes.s3;
    __global const float* from =
        x_rows + (inside ? ((size_t)(n * sizes.s2 + h) * sizes.s3 + w) * WIDTH : 0);
#define COPY(r, v) VSTORE(select((FLOATV)0, VLOAD(v, from), (INTV)(-inside)), v, rows);
    EACH_SUM(COPY, 0)
#undef COPY
    rows += WIDTH;
    if (++ow == sizes.s6) {
      ow = 0;
      if (++oh == sizes.s5) {
        oh = 0;
        ++n;
      }
    }
  }
}

VECTOR_KERNEL void conv2d_grad_weight_cpu_product(__global const float* x_rows,
                                                  __global const float* dy_rows,
                                                  __global float* partial, const int8 sizes,
                                                  const int8 window, const int share) {
  const int filters = FILTERS;
  const int blocks = (int)get_global_size(0), block = (int)get_global_id(0);
  const int tap = (int)get_global_id(1) % TAPS, split = (int)get_global_id(1) / TAPS;
  const int group = (int)get_global_id(2);
  if (!sees_something(sizes, window, tap)) return;
  const int positions = sizes.s0 * sizes.s5 * sizes.s6;
  const int row_blocks = (filters + TILE - 1) / TILE;
  x_rows += (size_t)(group * blocks + block) * sizes.s0 * sizes.s2 * sizes.s3 * WIDTH;
  dy_rows += (size_t)group * row_blocks * positions * TILE;
  partial += (size_t)(((split * GROUPS + group) * TAPS + tap) * blocks + block) * filters * WIDTH;
  float rows[CHUNK * WIDTH];
  const int begin = split * share, end = min(begin + share, positions);
  for (int first = begin; first < end; first += CHUNK) {
    const int used = min(CHUNK, end - first);
    fill_rows(rows, x_rows, sizes, window, tap, first, used);
    for (int m = 0; m < filters; m += TILE) {
      CLEAR_SUMS
      __global float* to = partial + (size_t)m * WIDTH;
      if (first > begin) {
#define LOAD_SUM(r, v) sum_##r##_##v = VLOAD(v, to + r * WIDTH);
#define LOAD_ROW(r) \
  if (m + r < filters) { EACH_SUM(LOAD_SUM, r) }
        EACH_ROW(LOAD_ROW)
#undef LOAD_ROW
#undef LOAD_SUM
      }
      __global const float* a = dy_rows + ((size_t)(m / TILE) * positions + first) * TILE;
      const float* b = rows;
#if UNROLL > 1
#pragma unroll UNROLL
#endif
      for (int k = 0; k < used; ++k) MULTIPLY_PACKED
#define STORE_SUM(r, v) VSTORE(sum_##r##_##v, v, to + r * WIDTH);
#define STORE_ROW(r) \
  if (m + r < filters) { EACH_SUM(STORE_SUM, r) }
      EACH_ROW(STORE_ROW)
#undef STORE_ROW
#undef STORE_SUM
    }
  }
}

// Work-item (SUM_FILTERS filters of a group, block of channels): each tap's rows are read in order.
__kernel void conv2d_grad_weight_cpu_sum(__global const float* partial,
                                         __global TYPE(Y_DTYPE)* dw, const int8 sizes,
                                         const int8 window, const int splits) {
  const int filters = FILTERS, channels = CHANNELS;
  const int blocks = (int)get_global_size(1), block = (int)get_global_id(1);
  const int shares = (filters + SUM_FILTERS - 1) / SUM_FILTERS;
  const int group = (int)get_global_id(0) / shares;
  const int first = ((int)get_global_id(0) - group * shares) * SUM_FILTERS;
  const int used = min(WIDTH, channels - block * WIDTH);
  const size_t split = (size_t)GROUPS * TAPS * blocks * filters * WIDTH;
  float sums[TAPS * WIDTH];
  for (int i = 0; i < TAPS * WIDTH; ++i) sums[i] = 0;
  int seen[TAPS];
  for (int tap = 0; tap < TAPS; ++tap) seen[tap] = sees_something(sizes, window, tap);
  for (int m = first; m < min(first + SUM_FILTERS, filters); ++m) {
    for (int tap = 0; tap < TAPS; ++tap) {
      if (!seen[tap]) continue;
      __global const float* from =
          partial + (((size_t)(group * TAPS + tap) * blocks + block) * filters + m) * WIDTH;
#define SUM_SPLITS(r, v)                                                \
  {                                                                     \
    FLOATV sum = VLOAD(v, from);                                        \
    for (int s = 1; s < splits; ++s) sum += VLOAD(v, from + s * split); \
    VSTORE(sum, v, sums + tap * WIDTH);                                 \
  }
      EACH_SUM(SUM_SPLITS, 0)
#undef SUM_SPLITS
    }
    __global TYPE(Y_DTYPE)* to =
        dw + ((size_t)(group * filters + m) * channels + block * WIDTH) * TAPS;
    for (int j = 0; j < used; ++j) {
#pragma unroll
      for (int tap = 0; tap < TAPS; ++tap) STORE(Y_DTYPE)(to, tap, sums[tap * WIDTH + j]);
      to += TAPS;
    }
  }
}
#endif
