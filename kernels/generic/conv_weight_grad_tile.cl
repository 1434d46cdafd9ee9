// Gradient of a convolution's weights for GPUs as an implicit matrix product: a work-group of 16 x 16
// work-items computes SIDE_M filters times SIDE_N weights of a filter through local memory.
//
// Contract   as in conv_weight_grad.cl. Local size 16 x 16; share: positions a split.
// Divisible  nothing: what lies outside is read as 0 and not stored.
// Tunables   TM TN DEPTH PAD AHEAD: tile.cl. WAVES: the share is such that every compute unit gets
//            about that many groups.
// Order      positions in order within a split, then the splits in order.
// Needs storage.cl, tile.cl and conv_weight_grad.cl before it.

#define COLUMNS (256 / DEPTH)
#define PLACE(i) (t / DEPTH + (i) * COLUMNS)
#define A_AT(i) (t % DEPTH * FLOATS_M + PLACE(i))
#define B_AT(i) (t % DEPTH * FLOATS_N + PLACE(i))
#define PREPARE(k0, turn)
#define ROUND(k0, turn)                                                                  \
  const int k = k0 + t % DEPTH;                                                          \
  const int inside = k < end;                                                            \
  const int image = k / positions, p = k - image * positions;                            \
  const int row = p / sizes.s6;                                                          \
  const int h0 = row * window.s2, w0 = (p - row * sizes.s6) * window.s3;                 \
  const size_t maps = (size_t)(image * GROUPS + group);                                  \
  __global const TYPE(D_DTYPE)* d = dy + maps * filters * positions + p;                 \
  __global const TYPE(X_DTYPE)* from = x + maps * channels * IN_PLANE;
#define A_VALUE(i)                        \
  (inside && m0 + PLACE(i) < filters      \
       ? LOAD(D_DTYPE)(d, (m0 + PLACE(i)) * positions) : 0.0f)
#define B_VALUE(i)                                                                       \
  (inside && (uint)(h0 + top[i]) < (uint)sizes.s2 && (uint)(w0 + left[i]) < (uint)sizes.s3 \
       ? LOAD(X_DTYPE)(from, base[i] + (h0 + top[i]) * sizes.s3 + w0 + left[i]) : 0.0f)

// Group (x, y, z): weights SIDE_N * x ..., filters SIDE_M * y ... of group z % groups, split
// z / groups of `share` positions.
__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void conv2d_grad_weight_generic_tile(
    __global const TYPE(X_DTYPE)* x, __global const TYPE(D_DTYPE)* dy, __global float* partial,
    const int8 sizes, const int8 window, const int share) {
  LOCAL_TILES
  const int lx = (int)get_local_id(0);
  const int ly = (int)get_local_id(1);
  const int t = ly * 16 + lx;
  const int group = (int)get_group_id(2) % GROUPS;
  const int split = (int)get_group_id(2) / GROUPS;
  const int q0 = SIDE_N * (int)get_group_id(0);
  const int m0 = SIDE_M * (int)get_group_id(1);
  const int filters = FILTERS, channels = CHANNELS, positions = POSITIONS;
  const int taps = window.s0 * window.s1;
  const int weights = channels * taps;
  const int begin = split * share;
  const int end = min(begin + share, sizes.s0 * positions);

  // The weights that a work-item fetches for are COLUMNS apart and stay the same in every round.
  int base[FETCHES_B], top[FETCHES_B], left[FETCHES_B];
#pragma unroll
  for (int i = 0; i < FETCHES_B; ++i) {
    const int q = q0 + PLACE(i);
    const int c = q / taps, tap = q - c * taps;
    base[i] = c * IN_PLANE;
    top[i] = q < weights ? tap / window.s1 * window.s6 - window.s4 : INT_MIN / 2;
    left[i] = tap % window.s1 * window.s7 - window.s5;
  }
  float sum[TM][TN];
  CLEAR(sum)
  ROUNDS(sum, begin, end)
  partial += ((size_t)split * sizes.s4 + group * filters) * weights;
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const int m = m0 + PLACE_M(i, ly);
    if (m >= filters) continue;
#pragma unroll
    for (int j = 0; j < TN; ++j) {
      const int q = q0 + PLACE_N(j, lx);
      if (q < weights) partial[(size_t)m * weights + q] = sum[i][j];
    }
  }
}
