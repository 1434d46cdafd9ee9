// matmul for GPUs: a work-group of 16 x 16 work-items computes a tile of y through local memory,
// each work-item TM x TN elements in registers.
//
// Contract   a: [M,K] or, TRANSPOSE_A, [K,M]; b: [K,N] or, TRANSPOSE_B, [N,K]; bias: [N] or a
//            stand-in; y: [M,N]. K may be 0. Product z of the batch begins at a + z a_batch,
//            b + z b_batch, y + z M N. Local size 16 x 16; group (x, y, z) makes columns
//            SIDE_N * x ... and rows SIDE_M * y ... of product z.
// Defines    A_DTYPE B_DTYPE Y_DTYPE, those of matmul_epilogue.cl, TRANSPOSE_A TRANSPOSE_B.
// Divisible  nothing: what lies outside is read as 0 and not stored.
// Tunables   TM TN DEPTH PAD AHEAD: tile.cl.
// Order      k = 0, 1, ... in one accumulator an element.
// Needs storage.cl, tile.cl and matmul_epilogue.cl before it.

// The elements that work-item t fetches: neighbours take neighbours in memory.
#define NTH(i) (t + 256 * (i))
#if TRANSPOSE_A
#define A_ROW(i) (NTH(i) % SIDE_M)
#define A_K(i) (NTH(i) / SIDE_M)
#define A_INDEX(row, k) ((size_t)(k) * M + (row))
#else
#define A_ROW(i) (NTH(i) / DEPTH)
#define A_K(i) (NTH(i) % DEPTH)
#define A_INDEX(row, k) ((size_t)(row) * K + (k))
#endif
#if TRANSPOSE_B
#define B_COLUMN(i) (NTH(i) / DEPTH)
#define B_K(i) (NTH(i) % DEPTH)
#define B_INDEX(k, column) ((size_t)(column) * K + (k))
#else
#define B_COLUMN(i) (NTH(i) % SIDE_N)
#define B_K(i) (NTH(i) / SIDE_N)
#define B_INDEX(k, column) ((size_t)(k) * N + (column))
#endif

#define ROUND(k0, turn) const int from = k0;
#define PREPARE(k0, turn)
#define A_AT(i) (A_K(i) * FLOATS_M + A_ROW(i))
#define B_AT(i) (B_K(i) * FLOATS_N + B_COLUMN(i))
#define A_VALUE(i)                                                       \
  (m0 + A_ROW(i) < M && from + A_K(i) < K                                \
       ? LOAD(A_DTYPE)(a, A_INDEX(m0 + A_ROW(i), from + A_K(i))) : 0.0f)
#define B_VALUE(i)                                                       \
  (n0 + B_COLUMN(i) < N && from + B_K(i) < K                             \
       ? LOAD(B_DTYPE)(b, B_INDEX(from + B_K(i), n0 + B_COLUMN(i))) : 0.0f)

__kernel __attribute__((reqd_work_group_size(16, 16, 1))) void matmul_generic_tile(
    __global const TYPE(A_DTYPE)* a, __global const TYPE(B_DTYPE)* b,
    __global const TYPE(BIAS_DTYPE)* bias, __global TYPE(Y_DTYPE)* y, const int M, const int N,
    const int K, const int a_batch, const int b_batch) {
  LOCAL_TILES
  a += (size_t)get_group_id(2) * a_batch;
  b += (size_t)get_group_id(2) * b_batch;
  y += (size_t)get_group_id(2) * M * N;
  const int lx = (int)get_local_id(0);
  const int ly = (int)get_local_id(1);
  const int t = ly * 16 + lx;
  const int m0 = SIDE_M * (int)get_group_id(1);
  const int n0 = SIDE_N * (int)get_group_id(0);

  float sum[TM][TN];
  CLEAR(sum)
  ROUNDS(sum, 0, K)

#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const int m = m0 + PLACE_M(i, ly);
    if (m >= M) continue;
#pragma unroll
    for (int j = 0; j < TN; ++j) {
      const int n = n0 + PLACE_N(j, lx);
      if (n < N) STORE(Y_DTYPE)(y, (size_t)m * N + n, activate(sum[i][j] + BIAS(n)));
    }
  }
}
