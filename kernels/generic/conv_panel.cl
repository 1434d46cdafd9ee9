// Convolution for CPUs: a work-item copies what 16 neighbouring outputs read into panels of f32
// (16 columns a tap and channel) and multiplies them with blocks of six packed rows of weights.
//
// Contract   source: x or dy of X_DTYPE; packed: the weights by conv_generic_weights with BLOCK 6;
//            bias: B_DTYPE or a stand-in; y: Y_DTYPE; panels: f32 scratch, for each work-item
//            `count` panels of KH * KW * SOURCE_CHANNELS * 16. Work-item w of `workers` takes the
//            blocks w, w + workers, ... of 16 * count outputs; global (workers, groups, classes).
// Divisible  nothing: columns beyond the end are zeros and not stored.
// Order      as in conv_axis.cl, one accumulator an element.
// Needs storage.cl and conv_axis.cl before it.

// Where the 16 outputs of a panel lie: the source element that tap base reads, less the plane's
// start, and the output's.
typedef struct {
  int top[16], left[16], image[16], out[16];
} conv_columns;

static inline void locate(conv_columns* at, const int column0, const int columns,
                          const conv_axis ah, const conv_axis aw, const int source_image,
                          const int out_image) {
  for (int j = 0; j < 16; ++j) {
    const int column = min(column0 + j, columns - 1);
    const int row = column / aw.grid;
    const int gw = column - row * aw.grid;
    const int n = row / ah.grid;
    const int gh = row - n * ah.grid;
    // A column beyond the end reads nothing: no source row is that far up.
    at->top[j] = column0 + j < columns ? gh * ah.step + ah.base : INT_MIN / 2;
    at->left[j] = gw * aw.step + aw.base;
    at->image[j] = n * source_image;
    at->out[j] = n * out_image + (gh * ah.out_step + ah.out_first) * aw.out_size +
                 gw * aw.out_step + aw.out_first;
  }
}

static inline void fill_panel(__global float* panel, __global const TYPE(X_DTYPE)* source,
                              const conv_columns* at, const conv_axis ah, const conv_axis aw,
                              const int channels) {
  const int plane = ah.source * aw.source;
  for (int th = 0; th < ah.taps; ++th) {
    for (int tw = 0; tw < aw.taps; ++tw) {
      int from[16];
      int inside = 1, together = 1;
      for (int j = 0; j < 16; ++j) {
        const int h = at->top[j] + th * ah.base_step;
        const int w = at->left[j] + tw * aw.base_step;
        const int ok = h >= 0 && h < ah.source && w >= 0 && w < aw.source;
        from[j] = ok ? at->image[j] + h * aw.source + w : -1;
        inside &= ok;
        together &= from[j] == from[0] + j;
      }
      if (inside && together) {
        __global const TYPE(X_DTYPE)* run = source + from[0];
        for (int c = 0; c < channels; ++c) {
          vstore4(LOAD4(X_DTYPE)(run, 0), 0, panel);
          vstore4(LOAD4(X_DTYPE)(run, 4), 1, panel);
          vstore4(LOAD4(X_DTYPE)(run, 8), 2, panel);
          vstore4(LOAD4(X_DTYPE)(run, 12), 3, panel);
          run += plane;
          panel += 16;
        }
        continue;
      }
      for (int c = 0; c < channels; ++c) {
        for (int j = 0; j < 16; ++j)
          panel[j] = from[j] >= 0 ? LOAD(X_DTYPE)(source, from[j] + c * plane) : 0.0f;
        panel += 16;
      }
    }
  }
}

#define EACH_ROW(M) M(0) M(1) M(2) M(3) M(4) M(5)

static inline void store16(__global TYPE(Y_DTYPE)* y, const conv_columns* at, const float8 low,
                           const float8 high, const int count) {
  if (count >= 16 && at->out[15] - at->out[0] == 15) {
    y += at->out[0];
    STORE4(Y_DTYPE)(y, 0, low.lo);
    STORE4(Y_DTYPE)(y, 4, low.hi);
    STORE4(Y_DTYPE)(y, 8, high.lo);
    STORE4(Y_DTYPE)(y, 12, high.hi);
    return;
  }
  float sums[16];
  vstore8(low, 0, sums);
  vstore8(high, 1, sums);
  for (int j = 0; j < min(count, 16); ++j) STORE(Y_DTYPE)(y, at->out[j], sums[j]);
}

__kernel void conv_generic_panel(__global const TYPE(X_DTYPE)* source,
                                 __global const float* packed,
                                 __global const TYPE(B_DTYPE)* bias, __global TYPE(Y_DTYPE)* y,
                                 __global float* panels, const int8 sizes, const int8 window,
                                 const int has_bias, const int count) {
  const int group = (int)get_global_id(1);
  const int class = (int)get_global_id(2);
  const int workers = (int)get_global_size(0);
  const conv_axis ah = height_axis(sizes, window, class / STRIDE_W);
  const conv_axis aw = width_axis(sizes, window, class % STRIDE_W);
  const int columns = sizes.s0 * ah.grid * aw.grid;
  const int channels = SOURCE_CHANNELS, filters = OUT_CHANNELS;
  const int plane = ah.source * aw.source, out_plane = ah.out_size * aw.out_size;
  const int depth = KERNEL_H * KERNEL_W * channels;
  const int row_blocks = (filters + 5) / 6;
  const int worker = ((int)get_global_id(2) * GROUPS + group) * workers + (int)get_global_id(0);
  panels += (size_t)worker * count * depth * 16;
  source += (size_t)group * channels * plane;
  y += (size_t)group * filters * out_plane;
  packed += (size_t)group * row_blocks * depth * 6;
  conv_columns at[MAX_PANELS];
  for (int first = (int)get_global_id(0) * 16 * count; first < columns;
       first += workers * 16 * count) {
    const int used = min(count, (columns - first + 15) / 16);
    for (int p = 0; p < used; ++p) {
      locate(&at[p], first + 16 * p, columns, ah, aw, sizes.s7 * channels * plane,
             sizes.s7 * filters * out_plane);
      fill_panel(panels + (size_t)p * depth * 16, source, &at[p], ah, aw, channels);
    }
    for (int block = 0; block < row_blocks; ++block) {
      __global const float* rows = packed + (size_t)block * depth * 6;
      for (int p = 0; p < used; ++p) {
#define START(r) float8 low##r = 0, high##r = 0;
        EACH_ROW(START)
#undef START
        __global const float* b = panels + (size_t)p * depth * 16;
        for (int th = 0; th < ah.taps; ++th) {
          for (int tw = 0; tw < aw.taps; ++tw) {
            const int tap = (ah.first + th * ah.tap_step) * KERNEL_W + aw.first + tw * aw.tap_step;
            __global const float* a = rows + (size_t)tap * channels * 6;
            for (int c = 0; c < channels; ++c) {
              const float8 b0 = vload8(0, b), b1 = vload8(1, b);
#define ADD(r)          \
  low##r += a[r] * b0;  \
  high##r += a[r] * b1;
              EACH_ROW(ADD)
#undef ADD
              a += 6;
              b += 16;
            }
          }
        }
#define STORE_ROW(r)                                                                     \
  if (block * 6 + r < filters) {                                                         \
    const int m = block * 6 + r;                                                         \
    const float offset = has_bias ? LOAD(B_DTYPE)(bias, group * filters + m) : 0.0f;     \
    store16(y + (size_t)m * out_plane, &at[p], low##r + offset, high##r + offset,        \
            columns - first - 16 * p);                                                   \
  }
        EACH_ROW(STORE_ROW)
#undef STORE_ROW
      }
    }
  }
}
