// A plane copied into a larger one of zeros, so that what reads across its border needs no test.
//
// Use        PAD_PLANE(name, T) defines name(to, from, h, w, top, left, rows, pitch): the plane
//            [h, w] of T goes to row `top` and column `left` of f32 [rows, pitch]; what does not
//            fit, before or behind, is left out.
// Needs storage.cl before it.

#define PAD_PLANE(name, T)                                                                      \
  static inline void name(__global float* to, __global const TYPE(T) * from, const int h,       \
                          const int w, const int top, const int left, const int rows,           \
                          const int pitch) {                                                    \
    const int begin = clamp(left, 0, pitch), end = clamp(left + w, begin, pitch);               \
    for (int r = 0; r < rows; ++r) {                                                            \
      const int line = r - top;                                                                 \
      const int inside = line >= 0 && line < h;                                                 \
      for (int j = 0; j < (inside ? begin : pitch); ++j) to[j] = 0;                             \
      if (inside) {                                                                             \
        for (int j = begin; j < end; ++j) to[j] = LOAD(T)(from, (size_t)line * w + (j - left)); \
        for (int j = end; j < pitch; ++j) to[j] = 0;                                            \
      }                                                                                         \
      to += pitch;                                                                              \
    }                                                                                           \
  }
