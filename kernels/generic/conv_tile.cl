// Convolution for GPUs as an implicit matrix product: a work-group of 16 x 16 work-items computes
// SIDE output channels times SIDE neighbouring outputs through local memory, each work-item T x T
// of them in registers.
//
// Contract   source: x or dy of X_DTYPE; packed: the weights by conv_generic_weights with BLOCK
//            SIDE; bias: B_DTYPE or a stand-in; y: Y_DTYPE. Local size 16 x 16; group (x, y, z)
//            makes outputs SIDE * x ..., channels SIDE * y ... of group z % groups and class
//            z / groups.
// Divisible  nothing: what lies outside is read as 0 and not stored.
// Tunables   T: 2, 4 or 8 (SIDE 32, 64, 128); DEPTH: products a round (8 or 16).
// Order      as in conv_axis.cl, one accumulator an element.
// Needs storage.cl, conv_axis.cl and tile.cl before it.

// What the k-th product of an output reads: x, y: the tap's offsets; z: the channel's offset in the
// source; w: the row of packed weights, -1 beyond the end.
static inline int4 product_of(const int k, const int depth, const int channels, const int plane,
                              const conv_axis ah, const conv_axis aw, const int kernel_w) {
  if (k >= depth) return (int4)(0, 0, 0, -1);
  const int tap = k / channels;
  const int c = k - tap * channels;
  const int th = tap / aw.taps;
  const int tw = tap - th * aw.taps;
  const int row = (ah.first + th * ah.tap_step) * kernel_w + aw.first + tw * aw.tap_step;
  return (int4)(ah.base + th * ah.base_step, aw.base + tw * aw.base_step, c * plane,
                row * channels + c);
}

__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void conv_generic_tile(
    __global const TYPE(X_DTYPE)* source, __global const float* packed,
    __global const TYPE(B_DTYPE)* bias, __global TYPE(Y_DTYPE)* y, const int8 sizes,
    const int8 window, const int has_bias) {
  __local VEC a_tile[DEPTH * PITCH];
  __local VEC b_tile[DEPTH * PITCH];
  __local float* a_flat = (__local float*)a_tile;
  __local float* b_flat = (__local float*)b_tile;
  __local int4 products[2][DEPTH];
  const int lx = (int)get_local_id(0);
  const int ly = (int)get_local_id(1);
  const int t = ly * 16 + lx;
  const int group = (int)get_group_id(2) % GROUPS;
  const int class = (int)get_group_id(2) / GROUPS;
  const conv_axis ah = height_axis(sizes, window, class / STRIDE_W);
  const conv_axis aw = width_axis(sizes, window, class % STRIDE_W);
  const int columns = sizes.s0 * ah.grid * aw.grid;
  const int n0 = SIDE * (int)get_group_id(0);
  const int m0 = SIDE * (int)get_group_id(1);
  const int filters = OUT_CHANNELS, channels = SOURCE_CHANNELS;
  const int plane = ah.source * aw.source;
  // A group beyond a class smaller than the first has nothing to do.
  const int depth = n0 < columns ? ah.taps * aw.taps * channels : 0;
  const int kernel_w = KERNEL_W;

  // Every work-item fills one column of the tile, SIDE being a divisor of 256.
  const int column = n0 + t % SIDE;
  const int line = column / max(aw.grid, 1);
  const int image = line / max(ah.grid, 1);
  const int top = column < columns ? (line - image * ah.grid) * ah.step : INT_MIN / 2;
  const int left = (column - line * aw.grid) * aw.step;
  source += ((size_t)min(image, sizes.s0 - 1) * GROUPS + group) * channels * plane;
  packed += ((size_t)group * get_num_groups(1) + get_group_id(1)) * KERNEL_H * kernel_w *
            channels * SIDE;

  float sum[T][T];
  CLEAR(sum);
  if (t < DEPTH) products[0][t] = product_of(t, depth, channels, plane, ah, aw, kernel_w);
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int k0 = 0, turn = 0; k0 < depth; k0 += DEPTH, turn = 1 - turn) {
#pragma unroll
    for (int i = t; i < SIDE * DEPTH; i += 256) {
      const int row = i % SIDE, k = i / SIDE;
      const int4 p = products[turn][k];
      a_flat[k * PITCH * W + row] = p.w >= 0 ? packed[(size_t)p.w * SIDE + row] : 0.0f;
      const int h = top + p.x, w = left + p.y;
      const int inside =
          p.w >= 0 && (uint)h < (uint)ah.source && (uint)w < (uint)aw.source;
      b_flat[k * PITCH * W + row] =
          inside ? LOAD(X_DTYPE)(source, p.z + h * aw.source + w) : 0.0f;
    }
    if (t < DEPTH) {
      products[1 - turn][t] =
          product_of(k0 + DEPTH + t, depth, channels, plane, ah, aw, kernel_w);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    MULTIPLY(sum, a_tile, b_tile);
    barrier(CLK_LOCAL_MEM_FENCE);
  }

  const int out_plane = ah.out_size * aw.out_size;
#pragma unroll
  for (int j = 0; j < T; ++j) {
    const int n = n0 + TILE_PLACE(j, lx);
    if (n >= columns) continue;
    const int out_line = n / aw.grid;
    const int out_image = out_line / ah.grid;
    const int h = (out_line - out_image * ah.grid) * ah.out_step + ah.out_first;
    const int w = (n - out_line * aw.grid) * aw.out_step + aw.out_first;
    __global TYPE(Y_DTYPE)* to =
        y + ((size_t)out_image * GROUPS + group) * filters * out_plane + h * aw.out_size + w;
#pragma unroll
    for (int i = 0; i < T; ++i) {
      const int m = m0 + TILE_PLACE(i, ly);
      if (m >= filters) continue;
      const float offset = has_bias ? LOAD(B_DTYPE)(bias, group * filters + m) : 0.0f;
      STORE(Y_DTYPE)(to, (size_t)m * out_plane, sum[i][j] + offset);
    }
  }
}
