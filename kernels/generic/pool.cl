// Pools over windows of [planes, H, W] -> [planes, OH, OW], and their gradients.
//
// Contract   sizes: planes H W OH OW; window: kernel, stride, padding (height, width). x, dx:
//            X_DTYPE [planes,H,W]; y, dy: Y_DTYPE [planes,OH,OW]; index: i32 [planes,OH,OW], the
//            place h * W + w of the maximum in its plane. total: elements of the result.
// Defines    ADAPTIVE: 0: windows slide by the stride; 1: window i spans floor(i in / out) to
//            ceil((i + 1) in / out). COUNT_PAD: averages divide by the window with its padding.
// Divisible  nothing.
// Order      rows, then columns; gradients add the windows of an element in order (a gather).
// NaN        wins a maximum.
// Needs storage.cl before it.

typedef struct {
  int begin, end, size;
} pool_range;

// The elements of window i, inside of the input; size counts padding.
static inline pool_range elements_of(const int i, const int in, const int out, const int kernel_size,
                                     const int stride, const int padding) {
  pool_range r;
#if ADAPTIVE
  r.begin = (int)((long)i * in / out);
  r.end = (int)(((long)(i + 1) * in + out - 1) / out);
  r.size = r.end - r.begin;
#else
  const int begin = i * stride - padding;
  r.begin = max(begin, 0);
  r.end = min(begin + kernel_size, in);
  r.size = min(begin + kernel_size, in + padding) - begin;
#endif
  return r;
}

// The windows that element e lies in.
static inline pool_range windows_of(const int e, const int in, const int out, const int kernel_size,
                                    const int stride, const int padding) {
  pool_range r;
#if ADAPTIVE
  r.begin = (int)((long)e * out / in);
  r.end = (int)(((long)(e + 1) * out + in - 1) / in);
#else
  const int last = e + padding;
  r.begin = last < kernel_size ? 0 : (last - kernel_size) / stride + 1;
  r.end = min(last / stride + 1, out);
#endif
  r.size = 0;
  return r;
}

#define ROWS_OF(range, i, in, out) range(i, in, out, window.s0, window.s2, window.s4)
#define COLUMNS_OF(range, i, in, out) range(i, in, out, window.s1, window.s3, window.s5)

static inline float window_divisor(const pool_range rows, const pool_range columns) {
#if COUNT_PAD
  return (float)(rows.size * columns.size);
#else
  return (float)((rows.end - rows.begin) * (columns.end - columns.begin));
#endif
}

__kernel void pool_generic_max(__global const TYPE(X_DTYPE)* x, __global TYPE(Y_DTYPE)* y,
                               __global int* index, const int8 sizes, const int8 window,
                               const int total) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  const int line = i / sizes.s4;
  const int plane = line / sizes.s3;
  const pool_range rows = ROWS_OF(elements_of, line - plane * sizes.s3, sizes.s1, sizes.s3);
  const pool_range columns = COLUMNS_OF(elements_of, i - line * sizes.s4, sizes.s2, sizes.s4);
  x += (size_t)plane * sizes.s1 * sizes.s2;
  float best = -INFINITY;
  int where = rows.begin * sizes.s2 + columns.begin;
  for (int h = rows.begin; h < rows.end; ++h) {
    for (int w = columns.begin; w < columns.end; ++w) {
      const float v = LOAD(X_DTYPE)(x, h * sizes.s2 + w);
      if (v > best || isnan(v)) {
        best = v;
        where = h * sizes.s2 + w;
      }
    }
  }
  STORE(Y_DTYPE)(y, i, best);
  index[i] = where;
}

__kernel void pool_generic_max_grad(__global const TYPE(Y_DTYPE)* dy, __global const int* index,
                                    __global TYPE(X_DTYPE)* dx, const int8 sizes,
                                    const int8 window, const int total) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  const int line = i / sizes.s2;
  const int plane = line / sizes.s1;
  const int h = line - plane * sizes.s1, w = i - line * sizes.s2;
  const pool_range rows = ROWS_OF(windows_of, h, sizes.s1, sizes.s3);
  const pool_range columns = COLUMNS_OF(windows_of, w, sizes.s2, sizes.s4);
  const size_t first = (size_t)plane * sizes.s3 * sizes.s4;
  const int place = h * sizes.s2 + w;
  float sum = 0;
  for (int a = rows.begin; a < rows.end; ++a) {
    for (int b = columns.begin; b < columns.end; ++b) {
      const size_t at = first + a * sizes.s4 + b;
      if (index[at] == place) sum += LOAD(Y_DTYPE)(dy, at);
    }
  }
  STORE(X_DTYPE)(dx, i, sum);
}

__kernel void pool_generic_avg(__global const TYPE(X_DTYPE)* x, __global TYPE(Y_DTYPE)* y,
                               const int8 sizes, const int8 window, const int total) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  const int line = i / sizes.s4;
  const int plane = line / sizes.s3;
  const pool_range rows = ROWS_OF(elements_of, line - plane * sizes.s3, sizes.s1, sizes.s3);
  const pool_range columns = COLUMNS_OF(elements_of, i - line * sizes.s4, sizes.s2, sizes.s4);
  x += (size_t)plane * sizes.s1 * sizes.s2;
  float sum = 0;
  for (int h = rows.begin; h < rows.end; ++h) {
    float row = 0;
    for (int w = columns.begin; w < columns.end; ++w) row += LOAD(X_DTYPE)(x, h * sizes.s2 + w);
    sum += row;
  }
  STORE(Y_DTYPE)(y, i, sum / window_divisor(rows, columns));
}

__kernel void pool_generic_avg_grad(__global const TYPE(Y_DTYPE)* dy,
                                    __global TYPE(X_DTYPE)* dx, const int8 sizes,
                                    const int8 window, const int total) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  const int line = i / sizes.s2;
  const int plane = line / sizes.s1;
  const pool_range rows = ROWS_OF(windows_of, line - plane * sizes.s1, sizes.s1, sizes.s3);
  const pool_range columns = COLUMNS_OF(windows_of, i - line * sizes.s2, sizes.s2, sizes.s4);
  const size_t first = (size_t)plane * sizes.s3 * sizes.s4;
  float sum = 0;
  for (int a = rows.begin; a < rows.end; ++a) {
    const pool_range seen_rows = ROWS_OF(elements_of, a, sizes.s1, sizes.s3);
    for (int b = columns.begin; b < columns.end; ++b) {
      const pool_range seen = COLUMNS_OF(elements_of, b, sizes.s2, sizes.s4);
      sum += LOAD(Y_DTYPE)(dy, first + a * sizes.s4 + b) / window_divisor(seen_rows, seen);
    }
  }
  STORE(X_DTYPE)(dx, i, sum);
}
