// Convolution by sub-groups as an implicit matrix product: each computes TM output channels and
// SG * TN neighbouring outputs, a work-item TM x TN elements of them. Weights, and where a product
// reads, go from work-item to work-item without local memory.
//
// Contract   source: x or dy of X_DTYPE; packed: the weights by conv_generic_weights with BLOCK TM;
//            bias: B_DTYPE or a stand-in; y: Y_DTYPE. Group (x, y, z), sub-group w: outputs
//            SG * TN * x ..., channels TM * (WAVES * y + w) ... of group z % groups and class
//            z / groups; `blocks`: blocks of TM channels.
// Divisible  nothing: what lies outside is read as 0 and not stored.
// Tunables   SG WAVES: subgroup.cl. TM: 4 or 8, TN: 1 or 2.
// Order      as in conv_axis.cl, one accumulator an element.
// Needs storage.cl, conv_axis.cl and subgroup.cl before it.

// What the k-th product of an output reads: x, y: the tap's offsets; z: the channel's offset in the
// source; w: the row of packed weights.
static inline int4 product_of(const int k, const int depth, const int channels, const int plane,
                              const conv_axis ah, const conv_axis aw, const int kernel_w) {
  const int tap = min(k, depth - 1) / channels;
  const int c = min(k, depth - 1) - tap * channels;
  const int th = tap / aw.taps;
  const int tw = tap - th * aw.taps;
  const int row = (ah.first + th * ah.tap_step) * kernel_w + aw.first + tw * aw.tap_step;
  return (int4)(ah.base + th * ah.base_step, aw.base + tw * aw.base_step, c * plane,
                row * channels + c);
}

static inline float source_value(__global const TYPE(X_DTYPE)* source, const int h, const int w,
                                 const int at, const int source_h, const int source_w) {
  const int inside = (uint)h < (uint)source_h && (uint)w < (uint)source_w;
  return inside ? LOAD(X_DTYPE)(source, at + h * source_w + w) : 0.0f;
}

// Product k of the round: what it reads, the weights of TM channels, one each of SG * TN outputs.
#define ADD_PRODUCTS(k)                                                                 \
  {                                                                                     \
    const int tap_h = SHARED(product, 0, k), tap_w = SHARED(product, 1, k);             \
    const int at = SHARED(product, 2, k);                                               \
    __global const float* weights = packed + (size_t)SHARED(product, 3, k) * TM;        \
    float values[TN];                                                                   \
    UNROLL for (int j = 0; j < TN; ++j)                                      \
        values[j] = source_value(sources[j], top[j] + tap_h, left[j] + tap_w, at,       \
                                 ah.source, aw.source);                                 \
    UNROLL for (int i = 0; i < TM; ++i) {                                    \
      const float s = weights[i];                                                       \
      UNROLL for (int j = 0; j < TN; ++j) sum[i][j] += s * values[j];        \
    }                                                                                   \
  }

SUBGROUP_KERNEL void conv_intel_subgroup(
    __global const TYPE(X_DTYPE)* source, __global const float* packed,
    __global const TYPE(B_DTYPE)* bias, __global TYPE(Y_DTYPE)* y, const int8 sizes,
    const int8 window, const int has_bias, const int blocks) {
  SHARE_SPACE(int, 4)
  const int group = (int)get_group_id(2) % GROUPS;
  const int class = (int)get_group_id(2) / GROUPS;
  const conv_axis ah = height_axis(sizes, window, class / STRIDE_W);
  const conv_axis aw = width_axis(sizes, window, class % STRIDE_W);
  const int columns = sizes.s0 * ah.grid * aw.grid;
  const int n0 = SG * TN * (int)get_group_id(0);
  const int block = WAVES * (int)get_group_id(1) + (int)get_local_id(1);
  const int filters = OUT_CHANNELS, channels = SOURCE_CHANNELS;
  const int plane = ah.source * aw.source;
  // A group beyond a class smaller than the first has nothing to do.
  const int depth = n0 < columns ? ah.taps * aw.taps * channels : 0;
  const int kernel_w = KERNEL_W;
  packed += ((size_t)group * blocks + min(block, blocks - 1)) * KERNEL_H * kernel_w * channels * TM;

  // Outputs that do not exist read far outside, that is, zeros.
  __global const TYPE(X_DTYPE)* sources[TN];
  int top[TN], left[TN];
  float sum[TM][TN];
  UNROLL
  for (int j = 0; j < TN; ++j) {
    const int n = n0 + SG * j + LANE;
    const int line = n / max(aw.grid, 1);
    const int image = line / max(ah.grid, 1);
    top[j] = n < columns ? (line - image * ah.grid) * ah.step : INT_MIN / 2;
    left[j] = (n - line * aw.grid) * aw.step;
    sources[j] = source + ((size_t)min(image, sizes.s0 - 1) * GROUPS + group) * channels * plane;
    UNROLL
    for (int i = 0; i < TM; ++i) sum[i][j] = 0;
  }

  for (int k0 = 0; k0 < depth; k0 += SG) {
    const int4 mine = product_of(k0 + LANE, depth, channels, plane, ah, aw, kernel_w);
    const int product[4] = {mine.x, mine.y, mine.z, mine.w};
    SHARE(4, product)
    const int end = min(SG, depth - k0);
    for (int k = 0; k < end; ++k) ADD_PRODUCTS(k)
    SHARED_USED
  }

  const int out_plane = ah.out_size * aw.out_size;
  UNROLL
  for (int j = 0; j < TN; ++j) {
    const int n = n0 + SG * j + LANE;
    if (n >= columns) continue;
    const int out_line = n / aw.grid;
    const int out_image = out_line / ah.grid;
    const int h = (out_line - out_image * ah.grid) * ah.out_step + ah.out_first;
    const int w = (n - out_line * aw.grid) * aw.out_step + aw.out_first;
    __global TYPE(Y_DTYPE)* to =
        y + ((size_t)out_image * GROUPS + group) * filters * out_plane + h * aw.out_size + w;
    UNROLL
    for (int i = 0; i < TM; ++i) {
      const int m = block * TM + i;
      if (m >= filters) continue;
      const float offset = has_bias ? LOAD(B_DTYPE)(bias, group * filters + m) : 0.0f;
      STORE(Y_DTYPE)(to, (size_t)m * out_plane, sum[i][j] + offset);
    }
  }
}
