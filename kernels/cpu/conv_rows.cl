// Convolution with stride 1 for few channels: a work-item copies the planes of an image into padded
// ones and reads the vectors that neighbouring outputs see straight from their rows.
//
// Contract   source: x or dy of X_DTYPE; packed: the weights by conv_cpu_pack; bias: B_DTYPE or a
//            stand-in; y: Y_DTYPE; padded: f32 scratch, for each image and group SOURCE_CHANNELS
//            planes of OUT_H + KH - 1 rows of PITCH; global (N, groups).
// Defines    KH KW; X_DTYPE B_DTYPE Y_DTYPE; TRANSPOSED as in conv_axis.cl.
// Divisible  nothing: vectors reach over the end of a row, and what lies there is not stored.
// Tunables   VECTOR (vector.cl), VECTORS: vectors of outputs, TILE (panel.cl).
// Order      channels, then the taps in the kernel's order; one accumulator an element.
// Needs storage.cl, conv_axis.cl, vector.cl, panel.cl and pad_plane.cl before it.

#if TRANSPOSED
#define SOURCE_H sizes.s5
#define SOURCE_W sizes.s6
#define OUT_H sizes.s2
#define OUT_W sizes.s3
#define TOP (KH - 1 - window.s4)
#define LEFT (KW - 1 - window.s5)
#define TAP(th, tw) ((KH - 1 - (th)) * KW + KW - 1 - (tw))
#else
#define SOURCE_H sizes.s2
#define SOURCE_W sizes.s3
#define OUT_H sizes.s5
#define OUT_W sizes.s6
#define TOP window.s4
#define LEFT window.s5
#define TAP(th, tw) ((th) * KW + (tw))
#endif

PAD_PLANE(pad_source, X_DTYPE)

VECTOR_KERNEL void conv_cpu_rows(__global const TYPE(X_DTYPE)* source,
                                 __global const float* packed,
                                 __global const TYPE(B_DTYPE)* bias, __global TYPE(Y_DTYPE)* y,
                                 __global float* padded, const int8 sizes, const int8 window,
                                 const int has_bias) {
  const int image = (int)get_global_id(0), group = (int)get_global_id(1);
  const int channels = SOURCE_CHANNELS, filters = OUT_CHANNELS;
  const int plane = SOURCE_H * SOURCE_W, out_h = OUT_H, out_w = OUT_W;
  const int row_blocks = (filters + TILE - 1) / TILE;
  const int across = (out_w + VECTOR - 1) / VECTOR, units = out_h * across;
  const int rows = out_h + KH - 1, pitch = across * VECTOR + KW - 1;
  source += (size_t)(image * GROUPS + group) * channels * plane;
  y += (size_t)(image * GROUPS + group) * filters * out_h * out_w;
  packed += (size_t)group * row_blocks * KH * KW * channels * TILE;
  padded += (size_t)(image * GROUPS + group) * channels * rows * pitch;
  for (int c = 0; c < channels; ++c) {
    pad_source(padded + (size_t)c * rows * pitch, source + (size_t)c * plane, SOURCE_H, SOURCE_W,
               TOP, LEFT, rows, pitch);
  }
  for (int unit = 0; unit < units; unit += VECTORS) {
#define PLACE(r, v)                                                    \
  const int unit##v = min(unit + v, units - 1);                        \
  const int line##v = unit##v / across;                                \
  const int column##v = (unit##v - line##v * across) * VECTOR;         \
  __global const float* const start##v = padded + line##v * pitch + column##v;
    EACH_SUM(PLACE, 0)
#undef PLACE
    for (int block = 0; block < row_blocks; ++block) {
      __global const float* rows_of_block = packed + (size_t)block * KH * KW * channels * TILE;
      CLEAR_SUMS
      for (int c = 0; c < channels; ++c) {
        for (int th = 0; th < KH; ++th) {
          const int from = (c * rows + th) * pitch;
#pragma unroll
          for (int tw = 0; tw < KW; ++tw) {
            __global const float* a = rows_of_block + (size_t)(TAP(th, tw) * channels + c) * TILE;
#define LOAD_UNIT(r, v) const FLOATV b##v = VLOAD(0, start##v + from + tw);
            EACH_SUM(LOAD_UNIT, 0)
#undef LOAD_UNIT
            EACH_ROW(ADD_PRODUCTS_OF)
          }
        }
      }
#define STORE_SUM(r, v)                                                         \
  if (unit + v < units) {                                                       \
    __global TYPE(Y_DTYPE)* row = to + (size_t)line##v * out_w + column##v;     \
    const FLOATV sum = sum_##r##_##v + offset;                                  \
    if (column##v + VECTOR <= out_w) {                                          \
      STOREV(Y_DTYPE, row, 0, sum)                                              \
    } else {                                                                    \
      float one[VECTOR];                                                        \
      VSTORE(sum, 0, one);                                                      \
      for (int j = 0; j < out_w - column##v; ++j) STORE(Y_DTYPE)(row, j, one[j]); \
    }                                                                           \
  }
#define STORE_ROW(r)                                                                 \
  if (block * TILE + r < filters) {                                                  \
    const int m = block * TILE + r;                                                  \
    const float offset = has_bias ? LOAD(B_DTYPE)(bias, group * filters + m) : 0.0f; \
    __global TYPE(Y_DTYPE)* to = y + (size_t)m * out_h * out_w;                      \
    EACH_SUM(STORE_SUM, r)                                                           \
  }
      EACH_ROW(STORE_ROW)
#undef STORE_ROW
#undef STORE_SUM
    }
  }
}
