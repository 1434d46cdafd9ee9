// Packs the weights of a convolution for conv_tile and conv_panel.
//
// Contract   w: [O, C/groups, KH, KW] of W_DTYPE; packed: f32 [groups, blocks, KH * KW, SOURCE
//            CHANNELS, BLOCK], blocks of BLOCK output channels, padded with zeros.
// Defines    BLOCK; W_DTYPE; TRANSPOSED as in conv_axis.cl, which says which side is the source.
// Divisible  nothing.
// Needs storage.cl and conv_axis.cl before it.

__kernel void conv_generic_weights(__global const TYPE(W_DTYPE)* w, __global float* packed,
                                   const int8 sizes, const int8 window, const int total) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  const int taps = KERNEL_H * KERNEL_W;
  const int blocks = (OUT_CHANNELS + BLOCK - 1) / BLOCK;
  const int m_in_block = i % BLOCK;
  const int source = i / BLOCK % SOURCE_CHANNELS;
  const int tap = i / BLOCK / SOURCE_CHANNELS % taps;
  const int block = i / BLOCK / SOURCE_CHANNELS / taps;
  const int group = block / blocks;
  const int m = (block - group * blocks) * BLOCK + m_in_block;
#if TRANSPOSED
  const int at = ((group * SOURCE_CHANNELS + source) * OUT_CHANNELS + m) * taps + tap;
#else
  const int at = ((group * OUT_CHANNELS + m) * SOURCE_CHANNELS + source) * taps + tap;
#endif
  packed[i] = m < OUT_CHANNELS ? LOAD(W_DTYPE)(w, at) : 0.0f;
}
