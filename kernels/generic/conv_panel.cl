// Convolution for CPUs: a work-item copies what WIDTH neighbouring outputs read into panels of f32
// (WIDTH columns a tap and channel) and multiplies them with blocks of TILE packed rows of weights.
//
// Contract   source: x or dy of X_DTYPE; packed: the weights by conv_generic_weights with BLOCK
//            TILE; bias: B_DTYPE or a stand-in; y: Y_DTYPE; panels: f32 scratch, for each work-item
//            PANELS panels of KH * KW * SOURCE_CHANNELS * WIDTH. Work-item w of `workers` takes the
//            blocks w, w + workers, ... of WIDTH * PANELS outputs, and of each group's output channels
//            one of `parts` shares; global (workers, groups * parts, classes).
// Divisible  nothing: columns beyond the end are zeros and not stored.
// Tunables   VECTOR (vector.cl), VECTORS, TILE (panel.cl). PANELS: 1 to 16, that share a pass over the weights.
//            UNROLL: 1, 2 or 4 channels. SHARES: work-items a compute unit, 1 to 16.
// Order      as in conv_axis.cl, one accumulator an element.
// Needs storage.cl, conv_axis.cl, vector.cl and panel.cl before it.

// Where the outputs of a panel lie: the source row and column that tap base reads, the element
// (counted on across borders), less the plane's start, and the output's. together: the elements are
// neighbours.
typedef struct {
  int top[WIDTH], left[WIDTH], image[WIDTH], out[WIDTH];
  int first, together;
} conv_columns;

static inline void locate(conv_columns* at, const int column0, const int columns,
                          const conv_axis ah, const conv_axis aw, const int source_image,
                          const int out_image) {
  at->together = 1;
  for (int j = 0; j < WIDTH; ++j) {
    const int column = min(column0 + j, columns - 1);
    const int row = column / aw.grid;
    const int gw = column - row * aw.grid;
    const int n = row / ah.grid;
    const int gh = row - n * ah.grid;
    const int top = gh * ah.step + ah.base;
    // A column beyond the end reads nothing: no source row is that far up.
    at->top[j] = column0 + j < columns ? top : INT_MIN / 2;
    at->left[j] = gw * aw.step + aw.base;
    at->image[j] = n * source_image;
    const int element = at->image[j] + top * aw.source + at->left[j];
    if (j == 0) at->first = element;
    at->together &= element == at->first + j || column0 + j >= columns;
    at->out[j] = n * out_image + (gh * ah.out_step + ah.out_first) * aw.out_size +
                 gw * aw.out_step + aw.out_first;
  }
}

// `left`: elements of the source from the group's first on.
static inline void fill_panel(__global float* panel, __global const TYPE(X_DTYPE)* source,
                              const conv_columns* at, const conv_axis ah, const conv_axis aw,
                              const int channels, const long left) {
  const int plane = ah.source * aw.source;
  for (int th = 0; th < ah.taps; ++th) {
    for (int tw = 0; tw < aw.taps; ++tw) {
      int from[WIDTH], read[WIDTH];
      int inside = 1;
      for (int j = 0; j < WIDTH; ++j) {
        const int h = at->top[j] + th * ah.base_step;
        const int w = at->left[j] + tw * aw.base_step;
        const int ok = h >= 0 && h < ah.source && w >= 0 && w < aw.source;
        from[j] = ok ? at->image[j] + h * aw.source + w : -1;
        read[j] = -ok;
        inside &= ok;
      }
      const long begin = (long)at->first + th * ah.base_step * aw.source + tw * aw.base_step;
      const int whole = at->together && begin >= 0 &&
                        begin + (long)(channels - 1) * plane + WIDTH <= left;
      __global const TYPE(X_DTYPE)* run = source + begin;
      if (whole && inside) {
        for (int c = 0; c < channels; ++c) {
#define COPY(r, v) VSTORE(LOADV(X_DTYPE, run, v * VECTOR), v, panel);
          EACH_SUM(COPY, 0)
#undef COPY
          run += plane;
          panel += WIDTH;
        }
      } else if (whole) {
        // What lies beyond the border is something else's, and must not count.
#define MASK(r, v) const INTV mask##v = VLOAD(v, read);
        EACH_SUM(MASK, 0)
#undef MASK
        for (int c = 0; c < channels; ++c) {
#define COPY(r, v) \
  VSTORE(select((FLOATV)0, LOADV(X_DTYPE, run, v * VECTOR), mask##v), v, panel);
          EACH_SUM(COPY, 0)
#undef COPY
          run += plane;
          panel += WIDTH;
        }
      } else {
        for (int c = 0; c < channels; ++c) {
          for (int j = 0; j < WIDTH; ++j)
            panel[j] = from[j] >= 0 ? LOAD(X_DTYPE)(source, from[j] + c * plane) : 0.0f;
          panel += WIDTH;
        }
      }
    }
  }
}

// Stores a row of `count` sums, or WIDTH.
static inline void store_scattered(__global TYPE(Y_DTYPE)* y, const conv_columns* at,
                                   const float* sums, const int count) {
  for (int j = 0; j < min(count, WIDTH); ++j) STORE(Y_DTYPE)(y, at->out[j], sums[j]);
}

VECTOR_KERNEL void conv_generic_panel(__global const TYPE(X_DTYPE)* source,
                                     __global const float* packed,
                                     __global const TYPE(B_DTYPE)* bias,
                                     __global TYPE(Y_DTYPE)* y, __global float* panels,
                                     const int8 sizes, const int8 window, const int has_bias,
                                     const int parts) {
  const int group = (int)get_global_id(1) / parts, part = (int)get_global_id(1) % parts;
  const int class = (int)get_global_id(2);
  const int workers = (int)get_global_size(0);
  const conv_axis ah = trimmed(height_axis(sizes, window, class / STRIDE_W));
  const conv_axis aw = trimmed(width_axis(sizes, window, class % STRIDE_W));
  const int columns = sizes.s0 * ah.grid * aw.grid;
  const int channels = SOURCE_CHANNELS, filters = OUT_CHANNELS;
  const int plane = ah.source * aw.source, out_plane = ah.out_size * aw.out_size;
  const int depth = KERNEL_H * KERNEL_W * channels;
  const int row_blocks = (filters + TILE - 1) / TILE;
  const int first_block = (int)((long)row_blocks * part / parts);
  const int end_block = (int)((long)row_blocks * (part + 1) / parts);
  const int worker =
      (class * GROUPS * parts + (int)get_global_id(1)) * workers + (int)get_global_id(0);
  panels += (size_t)worker * PANELS * depth * WIDTH;
  const long left = (long)(sizes.s0 * GROUPS - group) * channels * plane;
  source += (size_t)group * channels * plane;
  y += (size_t)group * filters * out_plane;
  packed += (size_t)group * row_blocks * depth * TILE;
  conv_columns at[PANELS];
  for (int first = (int)get_global_id(0) * WIDTH * PANELS; first < columns;
       first += workers * WIDTH * PANELS) {
    const int used = min(PANELS, (columns - first + WIDTH - 1) / WIDTH);
    for (int p = 0; p < used; ++p) {
      locate(&at[p], first + WIDTH * p, columns, ah, aw, sizes.s7 * channels * plane,
             sizes.s7 * filters * out_plane);
      fill_panel(panels + (size_t)p * depth * WIDTH, source, &at[p], ah, aw, channels, left);
    }
    for (int block = first_block; block < end_block; ++block) {
      __global const float* rows = packed + (size_t)block * depth * TILE;
      for (int p = 0; p < used; ++p) {
        CLEAR_SUMS
        __global const float* b = panels + (size_t)p * depth * WIDTH;
        for (int th = 0; th < ah.taps; ++th) {
          for (int tw = 0; tw < aw.taps; ++tw) {
            const int tap = (ah.first + th * ah.tap_step) * KERNEL_W + aw.first + tw * aw.tap_step;
            __global const float* a = rows + (size_t)tap * channels * TILE;
#if UNROLL > 1
#pragma unroll UNROLL
#endif
            for (int c = 0; c < channels; ++c) MULTIPLY_PACKED
          }
        }
        const int count = columns - first - WIDTH * p;
        const int whole = count >= WIDTH && at[p].out[WIDTH - 1] - at[p].out[0] == WIDTH - 1;
#define STORE_SUM(r, v) STOREV(Y_DTYPE, to + at[p].out[0], v * VECTOR, sum_##r##_##v + offset)
#define KEEP_SUM(r, v) VSTORE(sum_##r##_##v + offset, v, sums);
#define STORE_ROW(r)                                                                   \
  if (block * TILE + r < filters) {                                                    \
    const int m = block * TILE + r;                                                    \
    const float offset = has_bias ? LOAD(B_DTYPE)(bias, group * filters + m) : 0.0f;   \
    __global TYPE(Y_DTYPE)* to = y + (size_t)m * out_plane;                            \
    if (whole) {                                                                       \
      EACH_SUM(STORE_SUM, r)                                                           \
    } else {                                                                           \
      float sums[WIDTH];                                                               \
      EACH_SUM(KEEP_SUM, r)                                                            \
      store_scattered(to, &at[p], sums, count);                                        \
    }                                                                                  \
  }
        EACH_ROW(STORE_ROW)
#undef STORE_ROW
#undef KEEP_SUM
#undef STORE_SUM
      }
    }
  }
}
