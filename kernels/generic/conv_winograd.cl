// Convolution with 3 x 3 kernels and stride 1 for CPUs by minimal filtering F(2 x 2, 3 x 3): 16
// products give 2 x 2 neighbouring outputs, which take 36 otherwise. A work-item transforms what
// WIDTH tiles of outputs read, multiplies each of the 16 places with packed rows of transformed
// weights, and transforms the sums back.
//
// Contract   source: x or dy of X_DTYPE; packed: f32 [groups, blocks, 16, SOURCE CHANNELS, TILE] by
//            conv_winograd_generic_weights; bias: B_DTYPE or a stand-in; y: Y_DTYPE; places: f32
//            scratch, for each work-item 16 * SOURCE_CHANNELS * WIDTH. sizes, window and TRANSPOSED
//            as in conv_axis.cl. Work-item w of `workers` takes the blocks w, w + workers, ... of
//            WIDTH tiles, and of the filters one of `parts` shares; global (workers, groups * parts).
// Divisible  nothing: tiles reach over the edge of y.
// Tunables   VECTOR (vector.cl), VECTORS, TILE (panel.cl). UNROLL: 1, 2 or 4 channels. SHARES:
//            work-items a compute unit, 1 to 16.
// Order      each place: channels in order, one accumulator. Rounding differs from the plain sum's:
//            weights and elements are added up before they are multiplied.
// Needs storage.cl, conv_axis.cl, vector.cl, panel.cl and conv_winograd_tiles.cl before it.

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

VECTOR_KERNEL void conv_winograd_generic(__global const TYPE(X_DTYPE)* source,
                                         __global const float* packed,
                                         __global const TYPE(B_DTYPE)* bias,
                                         __global TYPE(Y_DTYPE)* y, __global float* places,
                                         const int8 sizes, const int8 window,
                                         const int has_bias, const int parts) {
  const int group = (int)get_global_id(1) / parts, part = (int)get_global_id(1) % parts;
  const int workers = (int)get_global_size(0);
  const int channels = SOURCE_CHANNELS, filters = OUT_CHANNELS;
  const int plane = SOURCE_H * SOURCE_W, out_plane = OUT_H * OUT_W, out_w = OUT_W;
  const int tiles = sizes.s0 * ((OUT_H + 1) / 2) * ((OUT_W + 1) / 2);
  const int row_blocks = (filters + TILE - 1) / TILE;
  const int first_block = (int)((long)row_blocks * part / parts);
  const int end_block = (int)((long)row_blocks * (part + 1) / parts);
  const int place = channels * WIDTH;
  places += ((size_t)get_global_id(1) * workers + get_global_id(0)) * 16 * place;
  const long left = (long)(sizes.s0 * GROUPS - group) * channels * plane;
  source += (size_t)group * channels * plane;
  y += (size_t)group * filters * out_plane;
  packed += (size_t)group * row_blocks * 16 * channels * TILE;
  winograd_tiles at;
  float sums[16 * TILE * WIDTH];
  for (int first = (int)get_global_id(0) * WIDTH; first < tiles; first += workers * WIDTH) {
    locate_tiles(&at, first, tiles, sizes, window, channels);
    for (int c = 0; c < channels; ++c) {
      __global const TYPE(X_DTYPE)* from = source + (size_t)c * plane;
      __global float* to = places + c * WIDTH;
      // Whether the windows, what they hold beyond borders included, lie within the source.
      const int safe = at.low + (long)c * plane >= 0 &&
                       at.high + (long)c * plane + 3 * SOURCE_W + 4 <= left;
#if SEGMENT > 0
      if (safe) {
        for (int j = 0; j < WIDTH; j += VECTOR)
          transform_lanes(to + j, from, &at, j, SOURCE_W, place);
        continue;
      }
#endif
      for (int j = 0; j < WIDTH; j += 4) transform_four(to + j, from, &at, j, SOURCE_W, place, safe);
    }
    for (int block = first_block; block < end_block; ++block) {
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
        __global TYPE(Y_DTYPE)* to = y + (size_t)m * out_plane;
#if SEGMENT > 0
        if (at.whole) {
          for (int j = 0; j < WIDTH; j += VECTOR)
            store_lanes(to, &at, j, sums + r * WIDTH + j, offset, out_w);
          continue;
        }
#endif
        for (int j = 0; j < WIDTH; j += 4)
          store_four(to, &at, j, sums + r * WIDTH + j, offset, out_w);
      }
    }
  }
}
