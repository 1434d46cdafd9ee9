// Convolution, one work-item an output: for channels too few to fill a tile (depthwise), and for
// devices without large work-groups.
//
// Contract   source: x or dy of X_DTYPE; w: W_DTYPE [O, C/groups, KH, KW]; bias: B_DTYPE or a
//            stand-in; y: Y_DTYPE, `total` elements.
// Divisible  nothing.
// Tunables   GROUP: the local size, 32 to 256.
// Order      as in conv_axis.cl, one accumulator.
// Needs storage.cl and conv_axis.cl before it.

__kernel void conv_generic_direct(__global const TYPE(X_DTYPE)* source,
                                  __global const TYPE(W_DTYPE)* weight,
                                  __global const TYPE(B_DTYPE)* bias, __global TYPE(Y_DTYPE)* y,
                                  const int8 sizes, const int8 window, const int has_bias,
                                  const int total) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  const int filters = OUT_CHANNELS, channels = SOURCE_CHANNELS;
#if TRANSPOSED
  const int out_w = sizes.s3, out_h = sizes.s2;
#else
  const int out_w = sizes.s6, out_h = sizes.s5;
#endif
  const int row = i / out_w;
  const int w = i - row * out_w;
  const int map = row / out_h;
  const int h = row - map * out_h;
  const int image = map / (filters * GROUPS);
  const int m = map - image * filters * GROUPS;
  const int group = m / filters;
#if TRANSPOSED
  const conv_axis ah = height_axis(sizes, window, h % STRIDE_H);
  const conv_axis aw = width_axis(sizes, window, w % STRIDE_W);
  const int step = filters * KERNEL_H * KERNEL_W;
  weight += (size_t)(group * channels) * step + (m - group * filters) * KERNEL_H * KERNEL_W;
#else
  const conv_axis ah = height_axis(sizes, window, 0);
  const conv_axis aw = width_axis(sizes, window, 0);
  const int step = KERNEL_H * KERNEL_W;
  weight += (size_t)m * channels * step;
#endif
  const int top = h / ah.out_step * ah.step + ah.base;
  const int left = w / aw.out_step * aw.step + aw.base;
  const int plane = ah.source * aw.source;
  source += (size_t)(image * GROUPS + group) * channels * plane;
  float sum = 0;
  for (int th = 0; th < ah.taps; ++th) {
    const int from_h = top + th * ah.base_step;
    if (from_h < 0 || from_h >= ah.source) continue;
    for (int tw = 0; tw < aw.taps; ++tw) {
      const int from_w = left + tw * aw.base_step;
      if (from_w < 0 || from_w >= aw.source) continue;
      int at = from_h * aw.source + from_w;
      int tap = (ah.first + th * ah.tap_step) * KERNEL_W + aw.first + tw * aw.tap_step;
      for (int c = 0; c < channels; ++c) {
        sum += LOAD(X_DTYPE)(source, at) * LOAD(W_DTYPE)(weight, tap);
        at += plane;
        tap += step;
      }
    }
  }
  STORE(Y_DTYPE)(y, i, sum + (has_bias ? LOAD(B_DTYPE)(bias, m) : 0.0f));
}
