// How a convolution moves along one dimension, for the gathering kernels conv_tile, conv_panel and
// conv_direct. Comes after storage.cl.
//
// Contract   sizes: N C H W O OH OW groups; window: KH KW, stride, padding and dilation (height,
//            width), both of the convolution x [N,C,H,W] * w [O,C/groups,KH,KW] -> [N,O,OH,OW].
// Defines    TRANSPOSED 0: y from x and w; 1: dx from dy and w (conv2d_grad_input,
//            conv_transpose2d). In the second form the outputs (h, w) fall into SH * SW classes
//            (h % SH, w % SW); those of a class are touched by the same taps of the kernel.
// Order      taps in the kernel's order, and for each tap the channels.

#define KERNEL_H window.s0
#define KERNEL_W window.s1
#define STRIDE_H window.s2
#define STRIDE_W window.s3
#define GROUPS sizes.s7

#if TRANSPOSED
#define OUT_CHANNELS (sizes.s1 / GROUPS)
#define SOURCE_CHANNELS (sizes.s4 / GROUPS)
#else
#define OUT_CHANNELS (sizes.s4 / GROUPS)
#define SOURCE_CHANNELS (sizes.s1 / GROUPS)
#endif

// Output g of the class lies at out_first + g * out_step and reads, with its tap t, the source
// element g * step + base + t * base_step; the tap is the kernel's element first + t * tap_step.
typedef struct {
  int grid, out_first, out_step, out_size;
  int taps, first, tap_step;
  int step, base, base_step, source;
} conv_axis;

static inline conv_axis forward_axis(const int kernel_size, const int stride, const int padding,
                                     const int dilation, const int x_size, const int y_size) {
  conv_axis a;
  a.grid = y_size;
  a.out_first = 0;
  a.out_step = 1;
  a.out_size = y_size;
  a.source = x_size;
  a.taps = kernel_size;
  a.first = 0;
  a.tap_step = 1;
  a.step = stride;
  a.base = -padding;
  a.base_step = dilation;
  return a;
}

static inline conv_axis make_axis(const int kernel_size, const int stride, const int padding,
                                  const int dilation, const int x_size, const int y_size,
                                  const int remainder) {
#if TRANSPOSED
  conv_axis a;
  a.out_first = remainder;
  a.out_step = stride;
  a.out_size = x_size;
  a.grid = remainder < x_size ? (x_size - remainder + stride - 1) / stride : 0;
  a.source = y_size;
  a.step = 1;
  // The taps that reach the class, k with (remainder + padding - k * dilation) % stride == 0, are
  // equally spaced.
  int k = 0;
  while (k < kernel_size && (remainder + padding - k * dilation) % stride != 0) ++k;
  int next = k + 1;
  while (next < kernel_size && (next - k) * dilation % stride != 0) ++next;
  a.first = k;
  a.tap_step = next - k;
  a.taps = k < kernel_size ? (kernel_size - 1 - k) / a.tap_step + 1 : 0;
  a.base = (remainder + padding - k * dilation) / stride;
  a.base_step = -(a.tap_step * dilation / stride);
  return a;
#else
  return forward_axis(kernel_size, stride, padding, dilation, x_size, y_size);
#endif
}

static inline conv_axis height_axis(const int8 sizes, const int8 window, const int remainder) {
  return make_axis(window.s0, window.s2, window.s4, window.s6, sizes.s2, sizes.s5, remainder);
}
static inline conv_axis width_axis(const int8 sizes, const int8 window, const int remainder) {
  return make_axis(window.s1, window.s3, window.s5, window.s7, sizes.s3, sizes.s6, remainder);
}

// Whether tap t of any output reads an element of the source.
static inline int sees(const conv_axis a, const int t) {
  const int at = a.base + t * a.base_step;
  const int g = at < 0 ? (a.step - 1 - at) / a.step : 0;
  return g < a.grid && at + g * a.step < a.source;
}

// Without the taps at both ends that read nothing but padding.
static inline conv_axis trimmed(conv_axis a) {
  while (a.taps > 0 && !sees(a, a.taps - 1)) --a.taps;
  while (a.taps > 0 && !sees(a, 0)) {
    a.first += a.tap_step;
    a.base += a.base_step;
    --a.taps;
  }
  return a;
}
