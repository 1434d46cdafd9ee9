// Gradient of a convolution's weights, one group of GROUP work-items an element: for channels too few
// to fill a tile.
//
// Contract   as in conv_weight_grad.cl, without partial sums.
// Divisible  nothing.
// Tunables   GROUP: 32, 64, 128 or 256 work-items a group.
// Order      strided partial sums, then a tree.
// Needs storage.cl, group_reduce.cl and conv_weight_grad.cl before it.

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
