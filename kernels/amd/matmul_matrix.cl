// matmul by the matrix units: a work-group of 256 computes a tile of y from tiles of a and b in local
// memory, each wave BLOCKS_M x BLOCKS_N blocks of it; the next round is fetched meanwhile.
//
// Contract   a: [M,K] or, TRANSPOSE_A, [K,M]; b: [K,N] or, TRANSPOSE_B, [N,K]; bias: [N] or a
//            stand-in; y: [M,N]. K may be 0. Product z of the batch begins at a + z a_batch,
//            b + z b_batch, y + z M N. Local size 256; group (x, y, z) makes columns SIDE_N * x ...
//            and rows SIDE_M * y ... of product z.
// Defines    DTYPE: of a and b, Y_DTYPE, those of matmul_epilogue.cl, TRANSPOSE_A TRANSPOSE_B; UNIT:
//            matrix_unit.cl.
// Divisible  nothing: what lies outside is read as 0 and not stored.
// Tunables   BLOCKS_M, BLOCKS_N: 1, 2 or 4, of which a wave has the product. DEPTH: 16 or 32, a round.
// Order      k in rounds of UNIT_K; within one the device's.
// Needs storage.cl, matrix_unit.cl and matmul_epilogue.cl before it.

#define WAVES_N (256 / WAVE / 2)
#define SIDE_M (BLOCK * BLOCKS_M * 2)
#define SIDE_N (BLOCK * BLOCKS_N * WAVES_N)

// A tile holds, for every LANE_K of the DEPTH k, the lines, and of each its LANE_K elements; one more
// line keeps what is stored at once off one bank. Work-item t fetches the pieces t, t + 256, ... of
// LANE_K elements; neighbours take neighbours in memory.
#define PITCH(side) ((side) + 1)
#define PIECES(side) ((side) * DEPTH / LANE_K)
#define FETCHES(side) ((PIECES(side) + 255) / 256)
#define PIECE(i) (t + 256 * (i))
#define LINE_OF(i, side, by_k) ((by_k) ? PIECE(i) / (DEPTH / LANE_K) : PIECE(i) % (side))
#define STEP_OF(i, side, by_k) ((by_k) ? PIECE(i) % (DEPTH / LANE_K) : PIECE(i) / (side))

// Elements k ... of one line of a or b; 0 outside. by_k: a line's elements lie together.
static inline void fetch_piece(__global const ELEMENT* p, ELEMENT* piece, const int by_k,
                               const int line, const int lines, const int k, const int K) {
  UNROLL
  for (int e = 0; e < LANE_K; ++e) {
    const size_t at = by_k ? (size_t)line * K + k + e : (size_t)(k + e) * lines + line;
    piece[e] = line < lines && k + e < K ? p[at] : (ELEMENT)0;
  }
}

#define FETCH(side, p, pieces, by_k, line0, lines, k0)                                        \
  UNROLL for (int i = 0; i < FETCHES(side); ++i)                                   \
      fetch_piece(p, pieces + i * LANE_K, by_k, line0 + LINE_OF(i, side, by_k), lines,        \
                  k0 + STEP_OF(i, side, by_k) * LANE_K, K);
#define PUT(side, tile, pieces, by_k)                                                         \
  UNROLL for (int i = 0; i < FETCHES(side); ++i) {                                 \
    if (PIECES(side) % 256 != 0 && PIECE(i) >= PIECES(side)) continue;                        \
    __local ELEMENT* to =                                                                     \
        tile + (STEP_OF(i, side, by_k) * PITCH(side) + LINE_OF(i, side, by_k)) * LANE_K;      \
    UNROLL for (int e = 0; e < LANE_K; ++e) to[e] = pieces[i * LANE_K + e];        \
  }
#define OPERAND_AT(tile, side, line, k)                                                       \
  ((__local const OPERAND*)(tile))[(k) / LANE_K * PITCH(side) + (line)]

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void matmul_amd_matrix(
    __global const ELEMENT* a, __global const ELEMENT* b, __global const TYPE(BIAS_DTYPE)* bias,
    __global TYPE(Y_DTYPE)* y, const int M, const int N, const int K, const int a_batch,
    const int b_batch) {
  __local OPERAND a_space[PITCH(SIDE_M) * DEPTH / LANE_K];
  __local OPERAND b_space[PITCH(SIDE_N) * DEPTH / LANE_K];
  UNIT_SPACE
  __local ELEMENT* a_tile = (__local ELEMENT*)a_space;
  __local ELEMENT* b_tile = (__local ELEMENT*)b_space;
  a += (size_t)get_group_id(2) * a_batch;
  b += (size_t)get_group_id(2) * b_batch;
  y += (size_t)get_group_id(2) * M * N;
  const int t = (int)get_local_id(0);
  const int m0 = SIDE_M * (int)get_group_id(1);
  const int n0 = SIDE_N * (int)get_group_id(0);
  const int wave_m = t / WAVE / WAVES_N * BLOCK * BLOCKS_M;
  const int wave_n = t / WAVE % WAVES_N * BLOCK * BLOCKS_N;

  ACC acc[BLOCKS_M][BLOCKS_N];
  UNROLL
  for (int i = 0; i < BLOCKS_M; ++i) {
    UNROLL
    for (int j = 0; j < BLOCKS_N; ++j) acc[i][j] = 0;
  }
  ELEMENT a_next[FETCHES(SIDE_M) * LANE_K], b_next[FETCHES(SIDE_N) * LANE_K];
  FETCH(SIDE_M, a, a_next, !TRANSPOSE_A, m0, M, 0)
  FETCH(SIDE_N, b, b_next, TRANSPOSE_B, n0, N, 0)
  for (int k0 = 0; k0 < K; k0 += DEPTH) {
    PUT(SIDE_M, a_tile, a_next, !TRANSPOSE_A)
    PUT(SIDE_N, b_tile, b_next, TRANSPOSE_B)
    barrier(CLK_LOCAL_MEM_FENCE);
    FETCH(SIDE_M, a, a_next, !TRANSPOSE_A, m0, M, k0 + DEPTH)
    FETCH(SIDE_N, b, b_next, TRANSPOSE_B, n0, N, k0 + DEPTH)
    UNROLL
    for (int k = 0; k < DEPTH; k += UNIT_K) {
      OPERAND a_part[BLOCKS_M], b_part[BLOCKS_N];
      UNROLL
      for (int i = 0; i < BLOCKS_M; ++i)
        a_part[i] = OPERAND_AT(a_tile, SIDE_M, wave_m + i * BLOCK + LINE, k + FIRST_K);
      UNROLL
      for (int j = 0; j < BLOCKS_N; ++j)
        b_part[j] = OPERAND_AT(b_tile, SIDE_N, wave_n + j * BLOCK + LINE, k + FIRST_K);
      UNROLL
      for (int i = 0; i < BLOCKS_M; ++i) {
        UNROLL
        for (int j = 0; j < BLOCKS_N; ++j) MULTIPLY_BLOCK(acc[i][j], a_part[i], b_part[j])
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }

  UNROLL
  for (int i = 0; i < BLOCKS_M; ++i) {
    UNROLL
    for (int j = 0; j < BLOCKS_N; ++j) {
      const int n = n0 + wave_n + j * BLOCK + LINE;
      float sums[ACC_SIZE];
      NETCL_JOIN(vstore, ACC_SIZE)(acc[i][j], 0, sums);
      UNROLL
      for (int r = 0; r < ACC_SIZE; ++r) {
        const int m = m0 + wave_m + i * BLOCK + ACC_ROW(r);
        if (m < M && n < N) STORE(Y_DTYPE)(y, (size_t)m * N + n, activate(sums[r] + BIAS(n)));
      }
    }
  }
}
