// Gradient of a convolution's weights with stride 1 for few channels: a work-item copies IMAGES
// images into padded planes and adds up rows of dy times rows of x, one vector a weight.
//
// Contract   x, dy, partial: as in conv_weight_grad.cl, a split being IMAGES images and the pitch
//            C/groups * KH * KW. x_padded: f32 [N, C, OH + KH - 1, PITCH], dy_padded: f32 [N, O, OH,
//            PITCH - KW + 1]; PITCH: OW in whole vectors and KW - 1 more; global (splits, groups).
// Defines    KH KW; X_DTYPE D_DTYPE Y_DTYPE.
// Divisible  nothing: rows are padded with zeros to whole vectors.
// Tunables   VECTOR (vector.cl). FILTERS_AT_ONCE: 2, 3, 4, 6 or 8; times KW at most 24. IMAGES: 4, 8 or 16.
// Order      images, rows, columns: VECTOR interleaved sums, then a fixed tree; then the splits.
// Needs storage.cl, vector.cl, pad_plane.cl and conv_weight_grad.cl before it.

PAD_PLANE(pad_x, X_DTYPE)
PAD_PLANE(pad_dy, D_DTYPE)

VECTOR_KERNEL void conv2d_grad_weight_cpu_rows(__global const TYPE(X_DTYPE)* x,
                                               __global const TYPE(D_DTYPE)* dy,
                                               __global float* x_padded,
                                               __global float* dy_padded,
                                               __global float* partial, const int8 sizes,
                                               const int8 window) {
  const int split = (int)get_global_id(0), group = (int)get_global_id(1);
  const int channels = CHANNELS, filters = FILTERS, out_h = sizes.s5;
  const int width = (sizes.s6 + VECTOR - 1) / VECTOR * VECTOR;
  const int rows = out_h + KH - 1, pitch = width + KW - 1;
  const int first = split * IMAGES, images = min(IMAGES, sizes.s0 - first);
  const int x_plane = rows * pitch, dy_plane = out_h * width;
  const size_t place = (size_t)first * GROUPS + (size_t)group * images;
  x_padded += place * channels * x_plane;
  dy_padded += place * filters * dy_plane;
  for (int n = 0; n < images; ++n) {
    const size_t image = (size_t)(first + n) * GROUPS + group;
    for (int c = 0; c < channels; ++c) {
      pad_x(x_padded + (n * channels + c) * x_plane, x + (image * channels + c) * IN_PLANE,
            sizes.s2, sizes.s3, window.s4, window.s5, rows, pitch);
    }
    for (int m = 0; m < filters; ++m) {
      pad_dy(dy_padded + (n * filters + m) * dy_plane, dy + (image * filters + m) * POSITIONS,
             out_h, sizes.s6, 0, 0, out_h, width);
    }
  }
  partial += ((size_t)split * sizes.s4 + group * filters) * channels * KH * KW;
  for (int m = 0; m < filters; m += FILTERS_AT_ONCE) {
    for (int c = 0; c < channels; ++c) {
      for (int th = 0; th < KH; ++th) {
        FLOATV sums[FILTERS_AT_ONCE][KW];
#pragma unroll
        for (int r = 0; r < FILTERS_AT_ONCE; ++r) {
#pragma unroll
          for (int tw = 0; tw < KW; ++tw) sums[r][tw] = 0;
        }
        for (int n = 0; n < images; ++n) {
          __global const float* a[FILTERS_AT_ONCE];
#pragma unroll
          for (int r = 0; r < FILTERS_AT_ONCE; ++r)
            a[r] = dy_padded + (n * filters + min(m + r, filters - 1)) * dy_plane;
          __global const float* b = x_padded + (n * channels + c) * x_plane + th * pitch;
          for (int h = 0; h < out_h; ++h) {
            for (int w = 0; w < width; w += VECTOR) {
              FLOATV d[FILTERS_AT_ONCE];
#pragma unroll
              for (int r = 0; r < FILTERS_AT_ONCE; ++r) d[r] = VLOAD(0, a[r] + h * width + w);
#pragma unroll
              for (int tw = 0; tw < KW; ++tw) {
                const FLOATV seen = VLOAD(0, b + h * pitch + w + tw);
#pragma unroll
                for (int r = 0; r < FILTERS_AT_ONCE; ++r) sums[r][tw] += d[r] * seen;
              }
            }
          }
        }
        for (int r = 0; r < min(FILTERS_AT_ONCE, filters - m); ++r) {
          for (int tw = 0; tw < KW; ++tw)
            partial[(((size_t)(m + r) * channels + c) * KH + th) * KW + tw] = sum_of(sums[r][tw]);
        }
      }
    }
  }
}
