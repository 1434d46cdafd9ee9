// matmul by tiles in local memory: 256 work-items, each with TM x TN elements in registers, laid out
// by waves; operands are fetched in fours, a round ahead of the products.
//
// Contract   a: [M,K] or, TRANSPOSE_A, [K,M]; b: [K,N] or, TRANSPOSE_B, [N,K]; bias: [N] or a
//            stand-in; y: [M,N]. K may be 0. Product z of the batch begins at a + z a_batch,
//            b + z b_batch, y + z M N. Local size 256; group (x, y, z) makes columns SIDE_N * x ...
//            and rows SIDE_M * y ... of product z.
// Defines    A_DTYPE B_DTYPE Y_DTYPE, those of matmul_epilogue.cl, TRANSPOSE_A TRANSPOSE_B; WIDE_A,
//            WIDE_B: the operand's last dimension is a multiple of four, so that fours are whole.
// Divisible  nothing: what lies outside is read as 0 and not stored.
// Tunables   TM TN DEPTH PAD AHEAD: tile.cl, with TM * DEPTH and TN * DEPTH at least 64. WAVE:
//            wave_tile.cl.
// Order      k = 0, 1, ... in one accumulator an element.
// Needs storage.cl, tile.cl, wave_tile.cl and matmul_epilogue.cl before it.

// The fours that work-item t fetches, four of them neighbours in memory: number q of t is NTH(q).
#define NTH(q) (t + 256 * (q))
#if TRANSPOSE_A
#define A_ROW(q) (NTH(q) % (SIDE_M / 4) * 4)
#define A_K(q) (NTH(q) / (SIDE_M / 4))
#define A_AT(i) (A_K((i) / 4) * FLOATS_M + A_ROW((i) / 4) + (i) % 4)
#define A_FOUR(q) FOUR(A_DTYPE, WIDE_A, a, from + A_K(q), K, m0 + A_ROW(q), M)
#else
#define A_ROW(q) (NTH(q) / (DEPTH / 4))
#define A_K(q) (NTH(q) % (DEPTH / 4) * 4)
#define A_AT(i) ((A_K((i) / 4) + (i) % 4) * FLOATS_M + A_ROW((i) / 4))
#define A_FOUR(q) FOUR(A_DTYPE, WIDE_A, a, m0 + A_ROW(q), M, from + A_K(q), K)
#endif
#if TRANSPOSE_B
#define B_COLUMN(q) (NTH(q) / (DEPTH / 4))
#define B_K(q) (NTH(q) % (DEPTH / 4) * 4)
#define B_AT(i) ((B_K((i) / 4) + (i) % 4) * FLOATS_N + B_COLUMN((i) / 4))
#define B_FOUR(q) FOUR(B_DTYPE, WIDE_B, b, n0 + B_COLUMN(q), N, from + B_K(q), K)
#else
#define B_COLUMN(q) (NTH(q) % (SIDE_N / 4) * 4)
#define B_K(q) (NTH(q) / (SIDE_N / 4))
#define B_AT(i) (B_K((i) / 4) * FLOATS_N + B_COLUMN((i) / 4) + (i) % 4)
#define B_FOUR(q) FOUR(B_DTYPE, WIDE_B, b, from + B_K(q), K, n0 + B_COLUMN(q), N)
#endif

// Elements i ... i + 3 of line `l` of a matrix [lines, size]; 0 where there is none.
#define FOUR(T, wide, p, l, lines, i, size)                                              \
  ((l) >= (lines) || (i) >= (size) ? (float4)(0.0f)                                      \
   : (wide) || (i) + 4 <= (size) ? LOAD4(T)(p, (size_t)(l) * (size) + (i))               \
   : (float4)(LOAD(T)(p, (size_t)(l) * (size) + (i)),                                    \
              (i) + 1 < (size) ? LOAD(T)(p, (size_t)(l) * (size) + (i) + 1) : 0.0f,      \
              (i) + 2 < (size) ? LOAD(T)(p, (size_t)(l) * (size) + (i) + 2) : 0.0f, 0.0f))

#define ROUND(k0, turn)                                                                  \
  const int from = k0;                                                                   \
  float a_fours[FETCHES_A], b_fours[FETCHES_B];                                          \
  _Pragma("unroll") for (int q = 0; q < FETCHES_A / 4; ++q) vstore4(A_FOUR(q), q, a_fours); \
  _Pragma("unroll") for (int q = 0; q < FETCHES_B / 4; ++q) vstore4(B_FOUR(q), q, b_fours);
#define PREPARE(k0, turn)
#define A_VALUE(i) a_fours[i]
#define B_VALUE(i) b_fours[i]

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void matmul_amd_wave(
    __global const TYPE(A_DTYPE)* a, __global const TYPE(B_DTYPE)* b,
    __global const TYPE(BIAS_DTYPE)* bias, __global TYPE(Y_DTYPE)* y, const int M, const int N,
    const int K, const int a_batch, const int b_batch) {
  LOCAL_TILES
  a += (size_t)get_group_id(2) * a_batch;
  b += (size_t)get_group_id(2) * b_batch;
  y += (size_t)get_group_id(2) * M * N;
  WAVE_PLACE
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
