// Gradient of a convolution's weights for CPUs: a work-item copies what WIDTH weights see at CHUNK
// positions into rows, and multiplies them with as many positions of TILE maps of dy.
//
// Contract   as in conv_weight_grad.cl. Global size (panels of WIDTH weights, splits, groups); pitch:
//            WIDTH a panel.
// Divisible  nothing.
// Tunables   VECTOR (vector.cl), VECTORS, TILE (panel.cl). CHUNK: 32, 64, 128 or 256. UNROLL: 1, 2 or 4 positions.
//            SPLITS: 1 to 64, at most one an image.
// Order      positions in order within a split, then the splits in order.
// Needs storage.cl, vector.cl, panel.cl and conv_weight_grad.cl before it.

// What a weight sees: its plane of x, and the tap's offset.
typedef struct {
  int plane, top, left;
} seen_by;

static inline seen_by make_seen(const int8 sizes, const int8 window, const int q) {
  const int tap = q % (window.s0 * window.s1);
  seen_by s;
  s.plane = q / (window.s0 * window.s1) * IN_PLANE;
  s.top = tap / window.s1 * window.s6 - window.s4;
  s.left = tap % window.s1 * window.s7 - window.s5;
  return s;
}

static inline float4 see4(__global const TYPE(X_DTYPE)* image, const seen_by s, const int8 sizes,
                          const int h0, const int w0) {
  const int h = h0 + s.top, w = w0 + s.left;
  const int4 ws = w + (int4)(0, 1, 2, 3);
  const int4 inside = (ws >= 0) & (ws < sizes.s3) & (int4)(h >= 0 && h < sizes.s2 ? -1 : 0);
  return select((float4)0, LOAD4(X_DTYPE)(image, s.plane + h * sizes.s3 + w), inside);
}

static inline float see(__global const TYPE(X_DTYPE)* image, const seen_by s, const int8 sizes,
                        const int h0, const int w0) {
  const int h = h0 + s.top, w = w0 + s.left;
  const int inside = h >= 0 && h < sizes.s2 && w >= 0 && w < sizes.s3;
  return inside ? LOAD(X_DTYPE)(image, s.plane + h * sizes.s3 + w) : 0.0f;
}

// Copies what weights q0 .. q0 + 3 see at positions first .. first + used into four columns of rows.
// before, after: elements of x that lie before and from `image` on.
static inline void fill_four(float* rows, __global const TYPE(X_DTYPE)* image, const int8 sizes,
                             const int8 window, const int q0, const int weights, const int first,
                             const int used, const long before, const long after) {
  seen_by s[4];
  // The elements of these four that lie first and last, of those that position 0 sees.
  int low = INT_MAX, high = INT_MIN;
  for (int j = 0; j < 4; ++j) {
    s[j] = make_seen(sizes, window, min(q0 + j, weights - 1));
    const int at = s[j].plane + s[j].top * sizes.s3 + s[j].left;
    low = min(low, at);
    high = max(high, at);
  }
  int ow = first % sizes.s6;
  int h = first / sizes.s6 * window.s2;
  int k = 0;
  while (k < used) {
    const long at = (long)h * sizes.s3 + ow * window.s3;
    if (q0 + 4 <= weights && window.s3 == 1 && k + 4 <= used && ow + 4 <= sizes.s6 &&
        at + low + before >= 0 && at + high + 4 <= after) {
      const float4 r0 = see4(image, s[0], sizes, h, ow), r1 = see4(image, s[1], sizes, h, ow);
      const float4 r2 = see4(image, s[2], sizes, h, ow), r3 = see4(image, s[3], sizes, h, ow);
      float* to = rows + k * WIDTH;
      vstore4((float4)(r0.x, r1.x, r2.x, r3.x), 0, to);
      vstore4((float4)(r0.y, r1.y, r2.y, r3.y), 0, to + WIDTH);
      vstore4((float4)(r0.z, r1.z, r2.z, r3.z), 0, to + 2 * WIDTH);
      vstore4((float4)(r0.w, r1.w, r2.w, r3.w), 0, to + 3 * WIDTH);
      k += 4;
      ow += 4;
    } else {
      for (int j = 0; j < 4; ++j) {
        rows[k * WIDTH + j] =
            q0 + j < weights ? see(image, s[j], sizes, h, ow * window.s3) : 0.0f;
      }
      ++k;
      ++ow;
    }
    if (ow == sizes.s6) {
      ow = 0;
      h += window.s2;
    }
  }
}

VECTOR_KERNEL void conv2d_grad_weight_generic_panel(__global const TYPE(X_DTYPE)* x,
                                                   __global const TYPE(D_DTYPE)* dy,
                                                   __global float* partial, const int8 sizes,
                                                   const int8 window) {
  const int q0 = WIDTH * (int)get_global_id(0);
  const int group = (int)get_global_id(2);
  const int split = (int)get_global_id(1), splits = (int)get_global_size(1);
  const int filters = FILTERS, channels = CHANNELS, positions = POSITIONS;
  const int pitch = WIDTH * (int)get_global_size(0);
  const int weights = channels * window.s0 * window.s1;
  float rows[CHUNK * WIDTH];
  partial += ((size_t)split * sizes.s4 + group * filters) * pitch + q0;
  for (int m = 0; m < filters; ++m) {
#define CLEAR(r, v) VSTORE((FLOATV)0, v, partial + (size_t)m * pitch);
    EACH_SUM(CLEAR, 0)
#undef CLEAR
  }
  const int end = (int)((long)sizes.s0 * (split + 1) / splits);
  for (int n = (int)((long)sizes.s0 * split / splits); n < end; ++n) {
    const long before = (long)(n * GROUPS + group) * channels * IN_PLANE;
    const long after = (long)sizes.s0 * sizes.s1 * IN_PLANE - before;
    __global const TYPE(X_DTYPE)* image = x + before;
    __global const TYPE(D_DTYPE)* maps = dy + (size_t)(n * GROUPS + group) * filters * positions;
    for (int first = 0; first < positions; first += CHUNK) {
      const int used = min(CHUNK, positions - first);
      for (int j = 0; j < WIDTH; j += 4) {
        fill_four(rows + j, image, sizes, window, q0 + j, weights, first, used, before, after);
      }
      for (int m0 = 0; m0 < filters; m0 += TILE) {
#define LOAD_SUM(r, v) FLOATV sum_##r##_##v = VLOAD(v, out##r);
#define START(r)                                                                            \
  __global const TYPE(D_DTYPE)* d##r = maps + min(m0 + r, filters - 1) * positions + first; \
  __global float* out##r = partial + (size_t)min(m0 + r, filters - 1) * pitch;              \
  EACH_SUM(LOAD_SUM, r)
        EACH_ROW(START)
#undef START
#undef LOAD_SUM
        const float* b = rows;
#if UNROLL > 1
#pragma unroll UNROLL
#endif
        for (int k = 0; k < used; ++k) {
#define LOAD_B(r, v) const FLOATV b##v = VLOAD(v, b);
          EACH_SUM(LOAD_B, 0)
#undef LOAD_B
#define MULTIPLY_ADD(r, v) sum_##r##_##v += d * b##v;
#define ADD(r)                              \
  {                                         \
    const float d = LOAD(D_DTYPE)(d##r, k); \
    EACH_SUM(MULTIPLY_ADD, r)               \
  }
          EACH_ROW(ADD)
#undef ADD
#undef MULTIPLY_ADD
          b += WIDTH;
        }
#define STORE_SUM(r, v) VSTORE(sum_##r##_##v, v, out##r);
#define STORE_ROW(r) \
  if (m0 + r < filters) { EACH_SUM(STORE_SUM, r) }
        EACH_ROW(STORE_ROW)
#undef STORE_ROW
#undef STORE_SUM
      }
    }
  }
}
