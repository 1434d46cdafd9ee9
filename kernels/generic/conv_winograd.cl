// Convolution with 3 x 3 kernels and stride 1 for CPUs by minimal filtering F(2 x 2, 3 x 3): 16
// products give 2 x 2 neighbouring outputs, which take 36 otherwise. A work-item transforms what
// WIDTH tiles of outputs read, multiplies each of the 16 places with packed rows of transformed
// weights, and transforms the sums back.
//
// Contract   source: x or dy of X_DTYPE; packed: f32 [groups, blocks, 16, SOURCE CHANNELS, TILE] by
//            conv_winograd_generic_weights; bias: B_DTYPE or a stand-in; y: Y_DTYPE; places: f32
//            scratch, for each work-item 16 * SOURCE_CHANNELS * WIDTH. sizes, window and TRANSPOSED
//            as in conv_axis.cl. Work-item w of `workers` takes the blocks w, w + workers, ... of
//            WIDTH tiles; global (workers, groups).
// Divisible  nothing: tiles reach over the edge of y.
// Tunables   VECTOR (vector.cl), VECTORS, TILE (panel.cl). UNROLL: 1, 2 or 4 channels. SHARES:
//            work-items a compute unit, 1 to 16.
// Order      each place: channels in order, one accumulator. Rounding differs from the plain sum's:
//            weights and elements are added up before they are multiplied.
// Needs storage.cl, conv_axis.cl, vector.cl and panel.cl before it.

#if TRANSPOSED
#define SOURCE_H sizes.s5
#define SOURCE_W sizes.s6
#define OUT_H sizes.s2
#define OUT_W sizes.s3
#define PADDING_H (2 - window.s4)
#define PADDING_W (2 - window.s5)
#else
#define SOURCE_H sizes.s2
#define SOURCE_W sizes.s3
#define OUT_H sizes.s5
#define OUT_W sizes.s6
#define PADDING_H window.s4
#define PADDING_W window.s5
#endif

// One work-item a filter (padded to whole blocks) and source channel.
__kernel void conv_winograd_generic_weights(__global const TYPE(W_DTYPE)* w,
                                            __global float* packed, const int8 sizes,
                                            const int total) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  const int channels = SOURCE_CHANNELS, filters = OUT_CHANNELS;
  const int blocks = (filters + TILE - 1) / TILE;
  const int row = i % TILE, c = i / TILE % channels, block = i / TILE / channels;
  const int group = block / blocks;
  const int m = (block - group * blocks) * TILE + row;
  float g[9];
  for (int t = 0; t < 9; ++t) {
#if TRANSPOSED
    const int at = ((group * channels + c) * filters + m) * 9 + 8 - t;
#else
    const int at = ((group * filters + m) * channels + c) * 9 + t;
#endif
    g[t] = m < filters ? LOAD(W_DTYPE)(w, at) : 0.0f;
  }
  float half_way[4][3];
  for (int j = 0; j < 3; ++j) {
    half_way[0][j] = g[j];
    half_way[1][j] = 0.5f * (g[j] + g[3 + j] + g[6 + j]);
    half_way[2][j] = 0.5f * (g[j] - g[3 + j] + g[6 + j]);
    half_way[3][j] = g[6 + j];
  }
  packed += ((size_t)block * 16 * channels + c) * TILE + row;
  const int place = channels * TILE;
  for (int k = 0; k < 4; ++k) {
    const float a = half_way[k][0], b = half_way[k][1], d = half_way[k][2];
    packed[(4 * k) * place] = a;
    packed[(4 * k + 1) * place] = 0.5f * (a + b + d);
    packed[(4 * k + 2) * place] = 0.5f * (a - b + d);
    packed[(4 * k + 3) * place] = d;
  }
}

// Where the tiles of a panel lie: the first element they read, counted on across borders, the first
// output, and how much of both exists.
typedef struct {
  int read[WIDTH], out[WIDTH], rows[WIDTH], columns[WIDTH];
  int4 inside[4][WIDTH];  // masks of the 4 x 4 elements
  int safe;               // all reads stay within the source
} winograd_tiles;

static inline void locate_tiles(winograd_tiles* at, const int first, const int tiles,
                                const int8 sizes, const int8 window, const int channels,
                                const long left) {
  const int across = (OUT_W + 1) / 2, down = (OUT_H + 1) / 2;
  int low = INT_MAX, high = INT_MIN;
  for (int j = 0; j < WIDTH; ++j) {
    const int tile = min(first + j, tiles - 1), exists = first + j < tiles;
    const int line = tile / across, image = line / down;
    const int h = 2 * (line - image * down), w = 2 * (tile - line * across);
    const int top = h - PADDING_H, start = w - PADDING_W;
    at->read[j] = image * GROUPS * channels * SOURCE_H * SOURCE_W + top * SOURCE_W + start;
    at->out[j] = image * GROUPS * OUT_CHANNELS * OUT_H * OUT_W + h * OUT_W + w;
    at->rows[j] = exists ? min(2, OUT_H - h) : 0;
    at->columns[j] = min(2, OUT_W - w);
    low = min(low, at->read[j]);
    high = max(high, at->read[j]);
    const int4 ws = start + (int4)(0, 1, 2, 3);
    const int4 across_mask = (ws >= 0) & (ws < SOURCE_W);
    for (int r = 0; r < 4; ++r) {
      const int h_read = top + r;
      at->inside[r][j] = exists && h_read >= 0 && h_read < SOURCE_H ? across_mask : (int4)0;
    }
  }
  at->safe = low >= 0 && (long)high + (long)(channels - 1) * SOURCE_H * SOURCE_W +
                                 3 * SOURCE_W + 4 <= left;
}

// Row r of the window of tile j, without what lies beyond the border.
static inline float4 window_row(__global const TYPE(X_DTYPE)* source, const winograd_tiles* at,
                                const int j, const int r, const int width) {
  const int4 inside = at->inside[r][j];
  const int from = at->read[j] + r * width;
  if (at->safe) return select((float4)0, LOAD4(X_DTYPE)(source, from), inside);
  return (float4)(inside.x ? LOAD(X_DTYPE)(source, from) : 0.0f,
                  inside.y ? LOAD(X_DTYPE)(source, from + 1) : 0.0f,
                  inside.z ? LOAD(X_DTYPE)(source, from + 2) : 0.0f,
                  inside.w ? LOAD(X_DTYPE)(source, from + 3) : 0.0f);
}

// The 16 places of four tiles, one lane a tile.
static inline void transform_four(__global float* places, __global const TYPE(X_DTYPE)* source,
                                  const winograd_tiles* at, const int j, const int width,
                                  const int place) {
  float4 row[4][4];
#define READ_ROW(r)                                                                    \
  {                                                                                    \
    const float4 p = window_row(source, at, j, r, width);                              \
    const float4 q = window_row(source, at, j + 1, r, width);                          \
    const float4 s = window_row(source, at, j + 2, r, width);                          \
    const float4 t = window_row(source, at, j + 3, r, width);                          \
    const float4 x0 = (float4)(p.x, q.x, s.x, t.x), x1 = (float4)(p.y, q.y, s.y, t.y); \
    const float4 x2 = (float4)(p.z, q.z, s.z, t.z), x3 = (float4)(p.w, q.w, s.w, t.w); \
    row[r][0] = x0 - x2;                                                               \
    row[r][1] = x1 + x2;                                                               \
    row[r][2] = x2 - x1;                                                               \
    row[r][3] = x1 - x3;                                                               \
  }
  READ_ROW(0) READ_ROW(1) READ_ROW(2) READ_ROW(3)
#undef READ_ROW
#define PUT_COLUMN(k)                                          \
  vstore4(row[0][k] - row[2][k], 0, places + (0 + k) * place); \
  vstore4(row[1][k] + row[2][k], 0, places + (4 + k) * place); \
  vstore4(row[2][k] - row[1][k], 0, places + (8 + k) * place); \
  vstore4(row[1][k] - row[3][k], 0, places + (12 + k) * place);
  PUT_COLUMN(0) PUT_COLUMN(1) PUT_COLUMN(2) PUT_COLUMN(3)
#undef PUT_COLUMN
}

// Transforms four tiles of a filter's sums back and stores them.
static inline void store_four(__global TYPE(Y_DTYPE)* y, const winograd_tiles* at, const int j,
                              const float* sums, const float offset, const int width) {
#define SUM(k) vload4(0, sums + (k) * TILE * WIDTH)
  float4 out[4];
  float4 top[4], bottom[4];
#define ADD_COLUMN(k)                                 \
  top[k] = SUM(k) + SUM(4 + k) + SUM(8 + k);          \
  bottom[k] = SUM(4 + k) - SUM(8 + k) - SUM(12 + k);
  ADD_COLUMN(0) ADD_COLUMN(1) ADD_COLUMN(2) ADD_COLUMN(3)
#undef ADD_COLUMN
#undef SUM
  out[0] = top[0] + top[1] + top[2] + offset;
  out[1] = top[1] - top[2] - top[3] + offset;
  out[2] = bottom[0] + bottom[1] + bottom[2] + offset;
  out[3] = bottom[1] - bottom[2] - bottom[3] + offset;
  const int start = at->out[j];
  if (at->rows[j] == 2 && at->rows[j + 3] == 2 && at->columns[j + 3] == 2 &&
      at->out[j + 3] == start + 6) {
    for (int r = 0; r < 2; ++r) {
      const float4 a = out[2 * r], b = out[2 * r + 1];
      STORE4(Y_DTYPE)(y, start + r * width, (float4)(a.x, b.x, a.y, b.y));
      STORE4(Y_DTYPE)(y, start + r * width + 4, (float4)(a.z, b.z, a.w, b.w));
    }
    return;
  }
  float flat[16];
  for (int k = 0; k < 4; ++k) vstore4(out[k], k, flat);
  for (int t = 0; t < 4; ++t) {
    for (int r = 0; r < at->rows[j + t]; ++r) {
      for (int c = 0; c < at->columns[j + t]; ++c)
        STORE(Y_DTYPE)(y, at->out[j + t] + r * width + c, flat[(2 * r + c) * 4 + t]);
    }
  }
}

VECTOR_KERNEL void conv_winograd_generic(__global const TYPE(X_DTYPE)* source,
                                         __global const float* packed,
                                         __global const TYPE(B_DTYPE)* bias,
                                         __global TYPE(Y_DTYPE)* y, __global float* places,
                                         const int8 sizes, const int8 window,
                                         const int has_bias) {
  const int group = (int)get_global_id(1);
  const int workers = (int)get_global_size(0);
  const int channels = SOURCE_CHANNELS, filters = OUT_CHANNELS;
  const int plane = SOURCE_H * SOURCE_W, out_plane = OUT_H * OUT_W, out_w = OUT_W;
  const int tiles = sizes.s0 * ((OUT_H + 1) / 2) * ((OUT_W + 1) / 2);
  const int row_blocks = (filters + TILE - 1) / TILE;
  const int place = channels * WIDTH;
  places += (size_t)(group * workers + (int)get_global_id(0)) * 16 * place;
  const long left = (long)(sizes.s0 * GROUPS - group) * channels * plane;
  source += (size_t)group * channels * plane;
  y += (size_t)group * filters * out_plane;
  packed += (size_t)group * row_blocks * 16 * channels * TILE;
  winograd_tiles at;
  float sums[16 * TILE * WIDTH];
  for (int first = (int)get_global_id(0) * WIDTH; first < tiles; first += workers * WIDTH) {
    locate_tiles(&at, first, tiles, sizes, window, channels, left);
    for (int c = 0; c < channels; ++c) {
      for (int j = 0; j < WIDTH; j += 4) {
        transform_four(places + c * WIDTH + j, source + (size_t)c * plane, &at, j, SOURCE_W, place);
      }
    }
    for (int block = 0; block < row_blocks; ++block) {
      __global const float* a = packed + (size_t)block * 16 * channels * TILE;
      __global const float* b = places;
      for (int k = 0; k < 16; ++k) {
        CLEAR_SUMS
#if UNROLL > 1
#pragma unroll UNROLL
#endif
        for (int c = 0; c < channels; ++c) MULTIPLY_PACKED
        float* to = sums + k * TILE * WIDTH;
#define KEEP_SUM(r, v) VSTORE(sum_##r##_##v, v, to + r * WIDTH);
#define KEEP_ROW(r) EACH_SUM(KEEP_SUM, r)
        EACH_ROW(KEEP_ROW)
#undef KEEP_ROW
#undef KEEP_SUM
      }
      for (int r = 0; r < min(TILE, filters - block * TILE); ++r) {
        const int m = block * TILE + r;
        const float offset = has_bias ? LOAD(B_DTYPE)(bias, group * filters + m) : 0.0f;
        for (int j = 0; j < WIDTH; j += 4) {
          store_four(y + (size_t)m * out_plane, &at, j, sums + r * WIDTH + j, offset, out_w);
        }
      }
    }
  }
}
