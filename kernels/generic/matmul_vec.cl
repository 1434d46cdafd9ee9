// matmul for CPUs: explicit vectors, one work-item a block of rows times a panel of 16 columns.
//
// Contract   a: f32, element (m, k) at m * a_row + k * a_step; b: panels of 16 columns, element
//            (k, n) at (n / 16) * b_panel + k * b_step + n % 16, readable up to the panel's end;
//            bias: f32[N] or a stand-in; y: f32[M,N]. K may be 0.
//            matmul_generic_pack_b makes such panels of any b, padded with zeros.
// Divisible  nothing: rows beyond M are read as row M - 1 and not stored, columns as the padding.
// Tunables   ROWS: rows a work-item (a multiple of 6 saves edge work; 24 to 96).
// Order      k = 0, 1, ... in one accumulator an element.
// Needs matmul_epilogue.cl before it.

// b is [K,N], or [N,K] if TRANSPOSE_B. Work-item (panel, block of 64 k).
__kernel void matmul_generic_pack_b(__global const float* b, __global float* packed, const int N,
                                    const int K) {
  const int panel = (int)get_global_id(0);
  const int first = 64 * (int)get_global_id(1);
  const int end = min(first + 64, K);
  const int n0 = 16 * panel;
  const int columns = min(16, N - n0);
  packed += (size_t)panel * K * 16;
#if TRANSPOSE_B
  for (int j = 0; j < 16; ++j) {
    __global const float* row = b + (size_t)(n0 + min(j, columns - 1)) * K;
    for (int k = first; k < end; ++k) packed[k * 16 + j] = j < columns ? row[k] : 0.0f;
  }
#else
  for (int k = first; k < end; ++k) {
    __global const float* row = b + (size_t)k * N + n0;
    if (columns == 16) {
      vstore16(vload16(0, row), 0, packed + k * 16);
    } else {
      for (int j = 0; j < 16; ++j) packed[k * 16 + j] = j < columns ? row[j] : 0.0f;
    }
  }
#endif
}

static inline void store_row(__global float* y, __global const float* bias, const float8 low,
                             const float8 high, const int columns) {
  if (columns >= 16) {
#if HAS_BIAS
    vstore8(activate8(low + vload8(0, bias)), 0, y);
    vstore8(activate8(high + vload8(1, bias)), 1, y);
#else
    vstore8(activate8(low), 0, y);
    vstore8(activate8(high), 1, y);
#endif
    return;
  }
  float sums[16];
  vstore8(low, 0, sums);
  vstore8(high, 1, sums);
  for (int j = 0; j < columns; ++j) y[j] = activate(sums[j] + BIAS(j));
}

#define EACH_ROW(M) M(0) M(1) M(2) M(3) M(4) M(5)

__kernel void matmul_generic_vec(__global const float* a, __global const float* b,
                                 __global const float* bias, __global float* y, const int M,
                                 const int N, const int K, const int a_row, const int a_step,
                                 const int b_panel, const int b_step) {
  const int panel = (int)get_global_id(1);
  const int n0 = 16 * panel;
  const int begin = ROWS * (int)get_global_id(0);
  const int end = min(begin + ROWS, M);
  b += (size_t)panel * b_panel;
#if HAS_BIAS
  bias += n0;
#endif
  for (int m0 = begin; m0 < end; m0 += 6) {
#define START(r)                                                              \
  __global const float* a##r = a + (size_t)min(m0 + r, M - 1) * a_row;        \
  float8 low##r = 0, high##r = 0;
    EACH_ROW(START)
#undef START
    __global const float* bk = b;
    size_t at = 0;
    for (int k = 0; k < K; ++k) {
      const float8 b0 = vload8(0, bk);
      const float8 b1 = vload8(1, bk);
#define ADD(r)               \
  {                          \
    const float s = a##r[at]; \
    low##r += s * b0;        \
    high##r += s * b1;       \
  }
      EACH_ROW(ADD)
#undef ADD
      bk += b_step;
      at += a_step;
    }
#define STORE_ROW(r) \
  if (m0 + r < end) store_row(y + (size_t)(m0 + r) * N + n0, bias, low##r, high##r, N - n0);
    EACH_ROW(STORE_ROW)
#undef STORE_ROW
  }
}
