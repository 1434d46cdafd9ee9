// Transforms and packs the weights of a convolution for conv_winograd: a work-item does a block of
// TILE output channels for SOURCES source channels, one lane an output channel.
//
// Contract   w: [O, C/groups, 3, 3] of W_DTYPE; packed: f32 [groups, blocks, 16, SOURCE CHANNELS,
//            TILE], blocks of TILE output channels, padded with zeros. Global size (groups * blocks,
//            ceil(SOURCE CHANNELS / SOURCES)).
// Defines    TILE SOURCES; W_DTYPE; TRANSPOSED as in conv_axis.cl, which says which side is the source.
// Divisible  nothing.
// Needs storage.cl, conv_axis.cl and weight_block.cl before it.

// Vectors wider than the processor's go to inlined functions only: nothing for the terminal.
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpsabi"
#endif

#if TILE == 4
#define PUT_LANES(v, p) vstore4((v).lo.lo, 0, p);
#elif TILE == 6
#define PUT_LANES(v, p)        \
  vstore4((v).lo.lo, 0, p);    \
  vstore2((v).lo.hi.lo, 2, p);
#elif TILE == 8
#define PUT_LANES(v, p) vstore8((v).lo, 0, p);
#else
#define PUT_LANES(v, p)        \
  vstore8((v).lo, 0, p);       \
  vstore4((v).hi.lo, 2, p);
#endif

__kernel void conv_winograd_cpu_pack(__global const TYPE(W_DTYPE)* w, __global float* packed,
                                     const int8 sizes) {
  const int channels = SOURCE_CHANNELS;
  const weight_block at = locate_block(sizes, 9);
  w += at.first;
  const int place = channels * TILE;
  float taps[9 * 16];
  for (int i = 0; i < 9 * 16; ++i) taps[i] = 0;
  for (int c = at.begin; c < at.end; ++c) {
    __global const TYPE(W_DTYPE)* from = w + (size_t)c * at.source;
    for (int r = 0; r < at.rows; ++r) {
#pragma unroll
      for (int t = 0; t < 9; ++t) {
#if TRANSPOSED
        taps[(8 - t) * 16 + r] = LOAD(W_DTYPE)(from, r * at.row + t);
#else
        taps[t * 16 + r] = LOAD(W_DTYPE)(from, r * at.row + t);
#endif
      }
    }
    __global float* to = packed + (get_global_id(0) * 16 * channels + c) * TILE;
    float16 half_way[4][3];
#pragma unroll
    for (int j = 0; j < 3; ++j) {
      const float16 a = vload16(j, taps), b = vload16(3 + j, taps), d = vload16(6 + j, taps);
      half_way[0][j] = a;
      half_way[1][j] = 0.5f * (a + b + d);
      half_way[2][j] = 0.5f * (a - b + d);
      half_way[3][j] = d;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float16 a = half_way[k][0], b = half_way[k][1], d = half_way[k][2];
      const float16 sum = 0.5f * (a + b + d), difference = 0.5f * (a - b + d);
      PUT_LANES(a, to + (4 * k) * place)
      PUT_LANES(sum, to + (4 * k + 1) * place)
      PUT_LANES(difference, to + (4 * k + 2) * place)
      PUT_LANES(d, to + (4 * k + 3) * place)
    }
  }
}
