// matmul for CPUs: explicit vectors, one work-item a block of ROWS rows times a panel of WIDTH =
// VECTOR * VECTORS columns.
//
// Contract   a: element (m, k) at m * a_row + k * a_step; bias: [N] or a stand-in; y: [M,N]. K may
//            be 0. Product z of the batch begins at a + z a_batch, b + z b_batch, y + z M N.
//            PACK 0: b is f32 [K,N], N a multiple of WIDTH. PACK 1: b is what matmul_generic_pack_b
//            makes of any b, panels of WIDTH columns padded with zeros, element (k, n) of a product
//            at (n / WIDTH * K + k) * WIDTH + n % WIDTH. PACK 2: b is [K,N] or, TRANSPOSE_B, [N,K],
//            and each work-item first packs its panel, K * WIDTH floats of `packed`.
// Defines    A_DTYPE B_DTYPE Y_DTYPE, those of matmul_epilogue.cl, TRANSPOSE_B, PACK.
// Divisible  nothing: rows beyond M are read as row M - 1 and not stored, columns as the padding.
// Tunables   VECTOR (vector.cl), VECTORS, TILE (panel.cl). ROWS: rows a work-item, a multiple of TILE: many take
//            the panel from a near cache more often, few give many processors work. UNROLL: 1, 2
//            or 4 steps of k. PACK: 0, 1, 2; 2 saves a launch and finds the panel in the cache, but
//            packs once more for every further block of rows.
// Order      k = 0, 1, ... in one accumulator an element.
// Needs storage.cl, vector.cl, panel.cl and matmul_epilogue.cl before it.

// Copies rows first .. end of columns n0 .. n0 + WIDTH of b to the panel.
static inline void pack_panel(__global const TYPE(B_DTYPE)* b, __global float* packed,
                              const int n0, const int first, const int end, const int N,
                              const int K) {
  const int columns = min(WIDTH, N - n0);
#if TRANSPOSE_B
  b += (size_t)n0 * K;
  // Blocks of 4 x 4 turn in registers.
  int k = first;
  for (; columns == WIDTH && k + 4 <= end; k += 4) {
    for (int j = 0; j < WIDTH; j += 4) {
      const float4 r0 = LOAD4(B_DTYPE)(b, (size_t)j * K + k);
      const float4 r1 = LOAD4(B_DTYPE)(b, (size_t)(j + 1) * K + k);
      const float4 r2 = LOAD4(B_DTYPE)(b, (size_t)(j + 2) * K + k);
      const float4 r3 = LOAD4(B_DTYPE)(b, (size_t)(j + 3) * K + k);
      __global float* to = packed + (size_t)k * WIDTH + j;
      vstore4((float4)(r0.x, r1.x, r2.x, r3.x), 0, to);
      vstore4((float4)(r0.y, r1.y, r2.y, r3.y), 0, to + WIDTH);
      vstore4((float4)(r0.z, r1.z, r2.z, r3.z), 0, to + 2 * WIDTH);
      vstore4((float4)(r0.w, r1.w, r2.w, r3.w), 0, to + 3 * WIDTH);
    }
  }
  for (; k < end; ++k) {
    for (int j = 0; j < WIDTH; ++j)
      packed[(size_t)k * WIDTH + j] = j < columns ? LOAD(B_DTYPE)(b, (size_t)j * K + k) : 0.0f;
  }
#else
  for (int k = first; k < end; ++k) {
    __global const TYPE(B_DTYPE)* row = b + (size_t)k * N + n0;
    __global float* to = packed + (size_t)k * WIDTH;
    if (columns == WIDTH) {
#define COPY(r, v) VSTORE(LOADV(B_DTYPE, row, v * VECTOR), v, to);
      EACH_SUM(COPY, 0)
#undef COPY
    } else {
      for (int j = 0; j < WIDTH; ++j) to[j] = j < columns ? LOAD(B_DTYPE)(row, j) : 0.0f;
    }
  }
#endif
}

// b is [K,N], or [N,K] if TRANSPOSE_B, one of them a product. Work-item (panel, block of 64 k,
// product).
__kernel void matmul_generic_pack_b(__global const TYPE(B_DTYPE)* b, __global float* packed,
                                    const int N, const int K) {
  const int panel = (int)get_global_id(0);
  const int first = 64 * (int)get_global_id(1);
  b += (size_t)get_global_id(2) * N * K;
  packed += (get_global_id(2) * get_global_size(0) + panel) * K * WIDTH;
  pack_panel(b, packed, WIDTH * panel, first, min(first + 64, K), N, K);
}

// Stores a row of sums that reaches beyond column N.
static inline void store_part(__global TYPE(Y_DTYPE)* y, __global const TYPE(BIAS_DTYPE)* bias,
                              const float* sums, const int columns) {
  for (int j = 0; j < columns; ++j) STORE(Y_DTYPE)(y, j, activate(sums[j] + BIAS(j)));
}

#if HAS_BIAS
#define BIASV(v) LOADV(BIAS_DTYPE, bias, (v) * VECTOR)
#else
#define BIASV(v) 0
#endif

#if PACK == 2
#define B_OF_KERNEL TYPE(B_DTYPE)
#else
#define B_OF_KERNEL float
#endif

// Work-item (block of rows, panel, product).
VECTOR_KERNEL void matmul_generic_vec(__global const TYPE(A_DTYPE)* a,
                                     __global const B_OF_KERNEL* b,
                                     __global const TYPE(BIAS_DTYPE)* bias,
                                     __global TYPE(Y_DTYPE)* y, __global float* packed,
                                     const int M, const int N, const int K, const int a_row,
                                     const int a_step, const int a_batch, const int b_batch) {
  const int n0 = WIDTH * (int)get_global_id(1);
  const int columns = N - n0;
  const int begin = ROWS * (int)get_global_id(0);
  const int end = min(begin + ROWS, M);
  a += get_global_id(2) * a_batch;
  b += get_global_id(2) * b_batch;
  y += get_global_id(2) * M * N;
#if PACK == 0
  const int b_step = N;
  __global const float* panel = b + n0;
#else
  const int b_step = WIDTH;
#if PACK == 1
  __global const float* panel = b + (size_t)n0 * K;
#else
  const size_t item = (get_global_id(2) * get_global_size(1) + get_global_id(1)) *
                          get_global_size(0) + get_global_id(0);
  packed += item * K * WIDTH;
  for (int k = 0; k < K; k += 64) pack_panel(b, packed, n0, k, min(k + 64, K), N, K);
  __global const float* panel = packed;
#endif
#endif
#if HAS_BIAS
  bias += n0;
#endif
  for (int m0 = begin; m0 < end; m0 += TILE) {
#define START(r) __global const TYPE(A_DTYPE)* a##r = a + (size_t)min(m0 + r, M - 1) * a_row;
    EACH_ROW(START)
#undef START
    CLEAR_SUMS
    __global const float* bk = panel;
    size_t at = 0;
#if UNROLL > 1
#pragma unroll UNROLL
#endif
    for (int k = 0; k < K; ++k) {
#define LOAD_B(r, v) const FLOATV b##v = VLOAD(v, bk);
      EACH_SUM(LOAD_B, 0)
#undef LOAD_B
#define MULTIPLY_ADD(r, v) sum_##r##_##v += s * b##v;
#define ADD(r)                               \
  {                                          \
    const float s = LOAD(A_DTYPE)(a##r, at); \
    EACH_SUM(MULTIPLY_ADD, r)                \
  }
      EACH_ROW(ADD)
#undef ADD
#undef MULTIPLY_ADD
      bk += b_step;
      at += a_step;
    }
    if (columns >= WIDTH) {
#define STORE_SUM(r, v) STOREV(Y_DTYPE, to, v * VECTOR, activate_vector(sum_##r##_##v + BIASV(v)))
#define STORE_ROW(r)                                                     \
  if (m0 + r < end) {                                                    \
    __global TYPE(Y_DTYPE)* to = y + (size_t)(m0 + r) * N + n0;          \
    EACH_SUM(STORE_SUM, r)                                               \
  }
      EACH_ROW(STORE_ROW)
#undef STORE_ROW
#undef STORE_SUM
    } else {
      float sums[WIDTH];
#define KEEP_SUM(r, v) VSTORE(sum_##r##_##v, v, sums);
#define STORE_ROW(r)                                                          \
  if (m0 + r < end) {                                                         \
    EACH_SUM(KEEP_SUM, r)                                                     \
    store_part(y + (size_t)(m0 + r) * N + n0, bias, sums, columns);           \
  }
      EACH_ROW(STORE_ROW)
#undef STORE_ROW
#undef KEEP_SUM
    }
  }
}
