// Convolution as an implicit matrix product by tiles in local memory: 256 work-items, laid out by
// waves, compute SIDE_M output channels times SIDE_N neighbouring outputs, TM x TN each in registers;
// weights are fetched in fours, what an output reads is looked up once a round.
//
// Contract   source: x or dy of X_DTYPE; packed: the weights by conv_generic_weights with BLOCK
//            SIDE_M; bias: B_DTYPE or a stand-in; y: Y_DTYPE. Local size 256; group (x, y, z) makes
//            outputs SIDE_N * x ..., channels SIDE_M * y ... of group z % groups and class z / groups.
// Divisible  nothing: what lies outside is read as 0 and not stored.
// Tunables   TM: 2, 4 or 8, TN: 4 or 8, DEPTH PAD AHEAD: tile.cl. WAVE: wave_tile.cl.
// Order      as in conv_axis.cl, one accumulator an element.
// Needs storage.cl, conv_axis.cl, tile.cl and wave_tile.cl before it.

// The k-th product of an output: x, y: the tap's offsets; z: the channel's in the source; w: the row
// of packed weights, -1 beyond the end.
static inline int4 product_at(const int k, const int depth, const int channels,
                              const conv_axis ah, const conv_axis aw, const int kernel_w) {
  if (k >= depth) return (int4)(0, 0, 0, -1);
  const int tap = k / channels, c = k - tap * channels;
  const int th = tap / aw.taps, tw = tap - th * aw.taps;
  const int row = (ah.first + th * ah.tap_step) * kernel_w + aw.first + tw * aw.tap_step;
  return (int4)(ah.base + th * ah.base_step, aw.base + tw * aw.base_step,
                c * ah.source * aw.source, row * channels + c);
}

// Neighbouring weights that a work-item fetches: four, or all of its own.
#define PART (FETCHES_A < 4 ? FETCHES_A : 4)
#define PARTS_OF_ROW (SIDE_M / PART)
#define A_PART(i) (t + 256 * ((i) / PART))
#define A_ROW(i) (A_PART(i) % PARTS_OF_ROW * PART + (i) % PART)
#define A_K(i) (A_PART(i) / PARTS_OF_ROW)
#define A_AT(i) (A_K(i) * FLOATS_M + A_ROW(i))
// SIDE_N divides 256, so that a work-item fetches of one output only.
#define B_COLUMN (t % SIDE_N)
#define B_K(i) ((t + 256 * (i)) / SIDE_N)
#define B_AT(i) (B_K(i) * FLOATS_N + B_COLUMN)
#define ROUND(k0, turn) __local const int4* now = products[turn];
#define PREPARE(k0, turn) \
  if (t < DEPTH) products[turn][t] = product_at(k0 + t, depth, channels, ah, aw, kernel_w);
#define A_VALUE(i) (now[A_K(i)].w >= 0 ? packed[(size_t)now[A_K(i)].w * SIDE_M + A_ROW(i)] : 0.0f)
#define B_VALUE(i) value_at(source, now[B_K(i)], top, left, ah.source, aw.source)

static inline float value_at(__global const TYPE(X_DTYPE)* source, const int4 product,
                             const int top, const int left, const int height, const int width) {
  const int h = top + product.x, w = left + product.y;
  if (product.w < 0 || (uint)h >= (uint)height || (uint)w >= (uint)width) return 0.0f;
  return LOAD(X_DTYPE)(source, product.z + h * width + w);
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void conv_amd_wave(
    __global const TYPE(X_DTYPE)* source, __global const float* packed,
    __global const TYPE(B_DTYPE)* bias, __global TYPE(Y_DTYPE)* y, const int8 sizes,
    const int8 window, const int has_bias) {
  LOCAL_TILES
  __local int4 products[2][DEPTH];
  WAVE_PLACE
  const int group = (int)get_group_id(2) % GROUPS;
  const int class = (int)get_group_id(2) / GROUPS;
  const conv_axis ah = height_axis(sizes, window, class / STRIDE_W);
  const conv_axis aw = width_axis(sizes, window, class % STRIDE_W);
  const int n0 = SIDE_N * (int)get_group_id(0), m0 = SIDE_M * (int)get_group_id(1);
  const int columns = sizes.s0 * ah.grid * aw.grid;
  const int filters = OUT_CHANNELS, channels = SOURCE_CHANNELS, kernel_w = KERNEL_W;
  // A group beyond a class smaller than the first has nothing to do.
  const int depth = n0 < columns ? ah.taps * aw.taps * channels : 0;

  // Where the output that this work-item fetches for reads; none: far outside.
  const int column = n0 + B_COLUMN;
  const int line = column / max(aw.grid, 1);
  const int image = line / max(ah.grid, 1);
  const int top = column < columns ? (line - image * ah.grid) * ah.step : INT_MIN / 2;
  const int left = (column - line * aw.grid) * aw.step;
  source += ((size_t)min(image, sizes.s0 - 1) * GROUPS + group) * channels * ah.source * aw.source;
  packed += ((size_t)group * get_num_groups(1) + get_group_id(1)) * KERNEL_H * kernel_w *
            channels * SIDE_M;

  float sum[TM][TN];
  CLEAR(sum)
  PREPARE(0, 0)
  barrier(CLK_LOCAL_MEM_FENCE);
  ROUNDS(sum, 0, depth)

  const size_t out_plane = (size_t)ah.out_size * aw.out_size;
#pragma unroll
  for (int j = 0; j < TN; ++j) {
    const int n = n0 + PLACE_N(j, lx);
    if (n >= columns) continue;
    const int out_line = n / aw.grid, out_image = out_line / ah.grid;
    const int h = (out_line - out_image * ah.grid) * ah.out_step + ah.out_first;
    const int w = (n - out_line * aw.grid) * aw.out_step + aw.out_first;
    __global TYPE(Y_DTYPE)* to =
        y + ((size_t)out_image * GROUPS + group) * filters * out_plane + h * aw.out_size + w;
#pragma unroll
    for (int i = 0; i < TM; ++i) {
      const int m = m0 + PLACE_M(i, ly);
      if (m < filters)
        STORE(Y_DTYPE)(to, (size_t)m * out_plane,
                       sum[i][j] + (has_bias ? LOAD(B_DTYPE)(bias, group * filters + m) : 0.0f));
    }
  }
}
