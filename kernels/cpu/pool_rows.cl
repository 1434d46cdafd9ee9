// Maximum pools with windows that slide, and their gradients, for processors: a work-item takes
// whole rows and computes VECTOR neighbouring outputs at once; at the borders, one by one.
//
// Contract   sizes: planes H W OH OW. x, dx: X_DTYPE [planes,H,W]; y, dy: Y_DTYPE [planes,OH,OW];
//            index: i32 [planes,OH,OW], the place h * W + w of the maximum in its plane. Work-item i
//            takes LINES rows of the result from row i * LINES on; lines: rows of the result.
// Defines    KH KW SH SW PH PW: the window (height, width); SW is 1 or 2, KW at least SW.
// Divisible  nothing: the last vector of a row is moved back and computes some outputs again.
// Tunables   VECTOR (vector.cl), at most 8 where SW is 2. LINES: 8, 32 or 128.
// Order      rows, then columns; gradients add the windows of an element in order (a gather).
// NaN        wins a maximum.
// Needs storage.cl and vector.cl before it.

#define H sizes.s1
#define W sizes.s2
#define OH sizes.s3
#define OW sizes.s4

#define FLOATS2 NETCL_JOIN(float, VECTOR_TWICE)
#if VECTOR == 4
#define VECTOR_TWICE 8
#define IOTA (int4)(0, 1, 2, 3)
#else
#define VECTOR_TWICE 16
#if VECTOR == 8
#define IOTA (int8)(0, 1, 2, 3, 4, 5, 6, 7)
#else
#define IOTA (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#endif
#endif

// The elements that tap k of VECTOR neighbouring windows sees, the first of them at p + k.
#if SW == 1
#define TAPS(p, k) LOADV(X_DTYPE, p, k)
#else
// Both halves of a load are used, so that nothing is read that no window sees.
#define LOAD_TWICE(p, i) ((FLOATS2)(LOADV(X_DTYPE, p, i), LOADV(X_DTYPE, p, (i) + VECTOR)))
#define TAPS(p, k) ((k) == 0 ? LOAD_TWICE(p, 0).even : LOAD_TWICE(p, (k) - 1).odd)
#endif

VECTOR_KERNEL void pool_cpu_max_rows(__global const TYPE(X_DTYPE)* x, __global TYPE(Y_DTYPE)* y,
                                     __global int* index, const int8 sizes, const int lines) {
  const int first = LINES * (int)get_global_id(0);
  // Windows whose columns all exist: from `inner` on to before `inner_end`.
  const int inner = min((PW + SW - 1) / SW, OW);
  const int inner_end = max(inner, W + PW < KW ? 0 : min((W + PW - KW) / SW + 1, OW));
  for (int line = first; line < min(first + LINES, lines); ++line) {
    const int plane = line / OH;
    const int top = (line - plane * OH) * SH - PH;
    const int begin = max(top, 0), end = min(top + KH, H);
    __global const TYPE(X_DTYPE)* image = x + (size_t)plane * H * W;
    const size_t out = (size_t)line * OW;
    const int vectors = inner_end - inner >= VECTOR;
    for (int o = 0; o < OW;) {
      if (vectors && o >= inner && o < inner_end) {
        o = min(o, inner_end - VECTOR);
        const int left = o * SW - PW;
        FLOATV best = -INFINITY;
        INTV where = begin * W + left + SW * IOTA;
        for (int h = begin; h < end; ++h) {
          __global const TYPE(X_DTYPE)* row = image + h * W + left;
#pragma unroll
          for (int k = 0; k < KW; ++k) {
            const FLOATV v = TAPS(row, k);
            const INTV more = (v > best) | (v != v);
            best = select(best, v, more);
            where = select(where, h * W + left + k + SW * IOTA, more);
          }
        }
        STOREV(Y_DTYPE, y, out + o, best)
        VSTORE(where, 0, index + out + o);
        o += VECTOR;
      } else {
        const int left = max(o * SW - PW, 0), right = min(o * SW - PW + KW, W);
        float best = -INFINITY;
        int where = begin * W + left;
        for (int h = begin; h < end; ++h) {
          for (int w = left; w < right; ++w) {
            const float v = LOAD(X_DTYPE)(image, h * W + w);
            if (v > best || isnan(v)) {
              best = v;
              where = h * W + w;
            }
          }
        }
        STORE(Y_DTYPE)(y, out + o, best);
        index[out + o] = where;
        ++o;
      }
    }
  }
}

// Windows along the width that an element sees, if it lies k elements behind the begin of the last.
#define WINDOWS(k) ((KW - 1 - (k)) / SW + 1)

// The sum of what VECTOR elements get, element j being k elements behind the begin of window
// o + j, and at `place` + j * SW in its plane.
static inline FLOATV gather(__global const TYPE(Y_DTYPE)* dy, __global const int* index,
                            const int8 sizes, const int from, const int to, const int o,
                            const int k, const int place) {
  FLOATV sum = 0;
  const INTV places = place + SW * IOTA;
  for (int a = from; a < to; ++a) {
    for (int back = (KW - 1 - k) / SW; back >= 0; --back) {
      const int at = a * OW + o - back;
      const FLOATV d = LOADV(Y_DTYPE, dy, at);
      sum += select((FLOATV)0, d, VLOAD(0, index + at) == places);
    }
  }
  return sum;
}

VECTOR_KERNEL void pool_cpu_max_grad_rows(__global const TYPE(Y_DTYPE)* dy,
                                          __global const int* index, __global TYPE(X_DTYPE)* dx,
                                          const int8 sizes, const int lines) {
  const int first = LINES * (int)get_global_id(0);
  // Steps o, that is columns o * SW - PW to (o + 1) * SW - PW - 1, that exist and whose windows all
  // do: from `inner` on to before `inner_end`.
  const int inner = max(WINDOWS(0) - 1, (PW + SW - 1) / SW);
  const int inner_end = min(OW, (W + PW) / SW);
  const int vectors = inner_end - inner >= VECTOR;
  const int vectors_begin = inner * SW - PW, vectors_end = inner_end * SW - PW;
  for (int line = first; line < min(first + LINES, lines); ++line) {
    const int plane = line / H;
    const int h = line - plane * H;
    const int last = h + PH;
    const int from = last < KH ? 0 : (last - KH) / SH + 1, to = min(last / SH + 1, OH);
    __global const TYPE(Y_DTYPE)* maps = dy + (size_t)plane * OH * OW;
    __global const int* maxima = index + (size_t)plane * OH * OW;
    __global TYPE(X_DTYPE)* row = dx + (size_t)line * W;
    for (int w = 0; w < W;) {
      if (vectors && w >= vectors_begin && w < vectors_end) {
        const int o = min((w + PW) / SW, inner_end - VECTOR);
        const int left = o * SW - PW;
        const FLOATV even = gather(maps, maxima, sizes, from, to, o, 0, h * W + left);
#if SW == 1
        STOREV(X_DTYPE, row, left, even)
#else
        const FLOATV odd = gather(maps, maxima, sizes, from, to, o, 1, h * W + left + 1);
        FLOATS2 both;
        both.even = even;
        both.odd = odd;
        STOREV(X_DTYPE, row, left, both.lo)
        STOREV(X_DTYPE, row, left + VECTOR, both.hi)
#endif
        w = left + SW * VECTOR;
      } else {
        const int behind = w + PW;
        const int left = behind < KW ? 0 : (behind - KW) / SW + 1;
        const int right = min(behind / SW + 1, OW);
        float sum = 0;
        for (int a = from; a < to; ++a) {
          for (int b = left; b < right; ++b) {
            if (maxima[a * OW + b] == h * W + w) sum += LOAD(Y_DTYPE)(maps, a * OW + b);
          }
        }
        STORE(X_DTYPE)(row, w, sum);
        ++w;
      }
    }
  }
}
