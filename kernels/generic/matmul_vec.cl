// matmul for CPUs: explicit vectors, one work-item a block of rows times a panel of 16 columns.
//
// Contract   a: element (m, k) at m * a_row + k * a_step; b: f32, panels of 16 columns, element
//            (k, n) at (n / 16) * b_panel + k * b_step + n % 16, readable up to the panel's end;
//            bias: [N] or a stand-in; y: [M,N]. K may be 0. Product z of the batch begins at
//            a + z a_batch, b + z b_batch, y + z M N.
//            matmul_generic_pack_b makes such panels of any b, padded with zeros.
// Defines    A_DTYPE B_DTYPE Y_DTYPE, those of matmul_epilogue.cl, TRANSPOSE_B.
// Divisible  nothing: rows beyond M are read as row M - 1 and not stored, columns as the padding.
// Tunables   ROWS: rows a work-item (a multiple of 6 saves edge work; 24 to 96).
// Order      k = 0, 1, ... in one accumulator an element.
// Needs storage.cl and matmul_epilogue.cl before it.

#define LOAD8(T, p, i) ((float8)(LOAD4(T)(p, i), LOAD4(T)(p, (i) + 4)))
#define STORE8(T, p, i, v)    \
  {                           \
    const float8 all = v;     \
    STORE4(T)(p, i, all.lo);  \
    STORE4(T)(p, i + 4, all.hi); \
  }

// b is [K,N], or [N,K] if TRANSPOSE_B, one of them a product. Work-item (panel, block of 64 k,
// product).
__kernel void matmul_generic_pack_b(__global const TYPE(B_DTYPE)* b, __global float* packed,
                                    const int N, const int K) {
  const int panel = (int)get_global_id(0);
  const int first = 64 * (int)get_global_id(1);
  const int end = min(first + 64, K);
  const int n0 = 16 * panel;
  const int columns = min(16, N - n0);
  b += (size_t)get_global_id(2) * N * K;
  packed += (get_global_id(2) * get_global_size(0) + panel) * K * 16;
#if TRANSPOSE_B
  for (int j = 0; j < 16; ++j) {
    __global const TYPE(B_DTYPE)* row = b + (size_t)(n0 + min(j, columns - 1)) * K;
    for (int k = first; k < end; ++k) {
      packed[k * 16 + j] = j < columns ? LOAD(B_DTYPE)(row, k) : 0.0f;
    }
  }
#else
  for (int k = first; k < end; ++k) {
    __global const TYPE(B_DTYPE)* row = b + (size_t)k * N + n0;
    if (columns == 16) {
      vstore8(LOAD8(B_DTYPE, row, 0), 0, packed + k * 16);
      vstore8(LOAD8(B_DTYPE, row, 8), 1, packed + k * 16);
    } else {
      for (int j = 0; j < 16; ++j) packed[k * 16 + j] = j < columns ? LOAD(B_DTYPE)(row, j) : 0.0f;
    }
  }
#endif
}

static inline void store_row(__global TYPE(Y_DTYPE)* y, __global const TYPE(BIAS_DTYPE)* bias,
                             const float8 low, const float8 high, const int columns) {
  if (columns >= 16) {
#if HAS_BIAS
    STORE8(Y_DTYPE, y, 0, activate8(low + LOAD8(BIAS_DTYPE, bias, 0)));
    STORE8(Y_DTYPE, y, 8, activate8(high + LOAD8(BIAS_DTYPE, bias, 8)));
#else
    STORE8(Y_DTYPE, y, 0, activate8(low));
    STORE8(Y_DTYPE, y, 8, activate8(high));
#endif
    return;
  }
  float sums[16];
  vstore8(low, 0, sums);
  vstore8(high, 1, sums);
  for (int j = 0; j < columns; ++j) STORE(Y_DTYPE)(y, j, activate(sums[j] + BIAS(j)));
}

#define EACH_ROW(M) M(0) M(1) M(2) M(3) M(4) M(5)

__kernel void matmul_generic_vec(__global const TYPE(A_DTYPE)* a, __global const float* b,
                                 __global const TYPE(BIAS_DTYPE)* bias, __global TYPE(Y_DTYPE)* y,
                                 const int M, const int N, const int K, const int a_row,
                                 const int a_step, const int b_panel, const int b_step,
                                 const int a_batch, const int b_batch) {
  const int panel = (int)get_global_id(1);
  const int n0 = 16 * panel;
  const int begin = ROWS * (int)get_global_id(0);
  const int end = min(begin + ROWS, M);
  a += get_global_id(2) * a_batch;
  b += get_global_id(2) * b_batch + (size_t)panel * b_panel;
  y += get_global_id(2) * M * N;
#if HAS_BIAS
  bias += n0;
#endif
  for (int m0 = begin; m0 < end; m0 += 6) {
#define START(r)                                                              \
  __global const TYPE(A_DTYPE)* a##r = a + (size_t)min(m0 + r, M - 1) * a_row;        \
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
    const float s = LOAD(A_DTYPE)(a##r, at); \
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
