// Packs the weights of a convolution for conv_panel: a work-item copies a block of TILE output
// channels for SOURCES source channels, reading and writing whole runs. Taps that see nothing of
// any image, such as all but the middle one of a 3 x 3 kernel on images of one element, are left out.
//
// Contract   w: [O, C/groups, KH, KW] of W_DTYPE; packed: f32 [groups, blocks, KH * KW, SOURCE
//            CHANNELS, TILE], blocks of TILE output channels, padded with zeros. Global size
//            (groups * blocks, ceil(SOURCE CHANNELS / SOURCES)).
// Defines    TILE SOURCES; ALL_TAPS, if none is to be left out; W_DTYPE; TRANSPOSED as in conv_axis.cl, which says which side is the source.
// Divisible  nothing.
// Needs storage.cl, conv_axis.cl and weight_block.cl before it.

// The taps of a dimension, from .x on to before .y, outside of which no output sees an element.
static inline int2 seen_taps(const int kernel_size, const int stride, const int padding,
                             const int dilation, const int x_size, const int y_size) {
  const conv_axis a =
      trimmed(forward_axis(kernel_size, stride, padding, dilation, x_size, y_size));
  return (int2)(a.first, a.first + a.taps);
}

__kernel void conv_cpu_pack(__global const TYPE(W_DTYPE)* w, __global float* packed,
                            const int8 sizes, const int8 window) {
  const int taps = KERNEL_H * KERNEL_W;
  const int channels = SOURCE_CHANNELS;
  const weight_block at = locate_block(sizes, taps);
  w += at.first;
  packed += get_global_id(0) * taps * channels * TILE;
#ifdef ALL_TAPS
  const int2 down = (int2)(0, KERNEL_H), across = (int2)(0, KERNEL_W);
#else
  const int2 down = seen_taps(KERNEL_H, STRIDE_H, window.s4, window.s6, sizes.s2, sizes.s5);
  const int2 across = seen_taps(KERNEL_W, STRIDE_W, window.s5, window.s7, sizes.s3, sizes.s6);
#endif
  for (int c = at.begin; c < at.end; ++c) {
    for (int th = down.x; th < down.y; ++th) {
      for (int tw = across.x; tw < across.y; ++tw) {
        const int tap = th * KERNEL_W + tw;
        __global const TYPE(W_DTYPE)* from = w + (size_t)c * at.source + tap;
        __global float* to = packed + ((size_t)tap * channels + c) * TILE;
        if (at.rows == TILE) {
#pragma unroll
          for (int r = 0; r < TILE; ++r) to[r] = LOAD(W_DTYPE)(from, r * at.row);
        } else {
          for (int r = 0; r < TILE; ++r) to[r] = r < at.rows ? LOAD(W_DTYPE)(from, r * at.row) : 0.0f;
        }
      }
    }
  }
}
