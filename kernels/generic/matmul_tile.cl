// matmul for GPUs: a work-group of 16 x 16 work-items computes a tile of y through local memory,
// each work-item T x T elements in registers.
//
// Contract   a: [M,K] or, TRANSPOSE_A, [K,M]; b: [K,N] or, TRANSPOSE_B, [N,K]; bias: [N] or a
//            stand-in; y: [M,N]. K may be 0. Product z of the batch begins at a + z a_batch,
//            b + z b_batch, y + z M N. Local size 16 x 16; group (x, y, z) makes columns
//            SIDE * x ... and rows SIDE * y ... of product z.
// Defines    A_DTYPE B_DTYPE Y_DTYPE, those of matmul_epilogue.cl, TRANSPOSE_A TRANSPOSE_B.
// Divisible  nothing: what lies outside is read as 0 and not stored.
// Tunables   T: 2, 4 or 8 (tile sides SIDE of 32, 64, 128); DEPTH: k a round (8 or 16).
// Order      k = 0, 1, ... in one accumulator an element.
// Needs storage.cl, tile.cl and matmul_epilogue.cl before it.

// Element (row, k) of a block whose rows are contiguous in k, or, else, contiguous in rows.
#define ALONG_K(type, p, row, k) LOAD(type)(p, (size_t)(row) * K + (k))

__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void matmul_generic_tile(
    __global const TYPE(A_DTYPE)* a, __global const TYPE(B_DTYPE)* b,
    __global const TYPE(BIAS_DTYPE)* bias, __global TYPE(Y_DTYPE)* y, const int M, const int N,
    const int K, const int a_batch, const int b_batch) {
  __local VEC a_tile[DEPTH * PITCH];
  __local VEC b_tile[DEPTH * PITCH];
  __local float* a_flat = (__local float*)a_tile;
  __local float* b_flat = (__local float*)b_tile;
  a += (size_t)get_group_id(2) * a_batch;
  b += (size_t)get_group_id(2) * b_batch;
  y += (size_t)get_group_id(2) * M * N;
  const int lx = (int)get_local_id(0);
  const int ly = (int)get_local_id(1);
  const int t = ly * 16 + lx;
  const int m0 = SIDE * (int)get_group_id(1);
  const int n0 = SIDE * (int)get_group_id(0);

  float sum[T][T];
  CLEAR(sum)

  for (int k0 = 0; k0 < K; k0 += DEPTH) {
#pragma unroll
    for (int i = t; i < SIDE * DEPTH; i += 256) {
#if TRANSPOSE_A
      const int row = i % SIDE, k = i / SIDE;
      const int inside = m0 + row < M && k0 + k < K;
      a_flat[k * PITCH * W + row] = inside ? LOAD(A_DTYPE)(a, (size_t)(k0 + k) * M + m0 + row) : 0.0f;
#else
      const int row = i / DEPTH, k = i % DEPTH;
      const int inside = m0 + row < M && k0 + k < K;
      a_flat[k * PITCH * W + row] = inside ? ALONG_K(A_DTYPE, a, m0 + row, k0 + k) : 0.0f;
#endif
    }
#pragma unroll
    for (int i = t; i < SIDE * DEPTH; i += 256) {
#if TRANSPOSE_B
      const int column = i / DEPTH, k = i % DEPTH;
      const int inside = n0 + column < N && k0 + k < K;
      b_flat[k * PITCH * W + column] = inside ? ALONG_K(B_DTYPE, b, n0 + column, k0 + k) : 0.0f;
#else
      const int column = i % SIDE, k = i / SIDE;
      const int inside = n0 + column < N && k0 + k < K;
      b_flat[k * PITCH * W + column] = inside ? LOAD(B_DTYPE)(b, (size_t)(k0 + k) * N + n0 + column) : 0.0f;
#endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    MULTIPLY(sum, a_tile, b_tile)
    barrier(CLK_LOCAL_MEM_FENCE);
  }

#pragma unroll
  for (int i = 0; i < T; ++i) {
    const int m = m0 + TILE_PLACE(i, ly);
    if (m >= M) continue;
#pragma unroll
    for (int j = 0; j < T; ++j) {
      const int n = n0 + TILE_PLACE(j, lx);
      if (n < N) STORE(Y_DTYPE)(y, (size_t)m * N + n, activate(sum[i][j] + BIAS(n)));
    }
  }
}
