// matmul of 16-bit floats by the matrix units: each sub-group computes TM blocks of 8 rows times TN
// blocks of SG columns of y; operands come from global memory as the units take them.
//
// Contract   a: [M,K] or, TRANSPOSE_A, [K,M]; b: [K,N] or, TRANSPOSE_B, [N,K], both of DTYPE; bias: [N]
//            or a stand-in; y: [M,N]. K may be 0. Product z of the batch begins at a + z a_batch,
//            b + z b_batch, y + z M N. Group (x, y, z), sub-group w: columns SG * TN * x ..., rows
//            8 * TM * (WAVES * y + w) ... of product z.
// Defines    DTYPE Y_DTYPE, those of matmul_epilogue.cl, TRANSPOSE_A TRANSPOSE_B.
// Divisible  nothing: what lies outside is read as 0 and not stored.
// Tunables   SG: 8 or 16. WAVES: subgroup.cl. TM: 1, 2 or 4, TN: 1, 2 or 4.
// Order      k in blocks of 16; within a block the device's.
// Needs storage.cl, subgroup.cl, matrix_unit.cl and matmul_epilogue.cl before it.

// The bits of element k of line `line`; 0 outside. by_k: a line's elements lie together.
static inline uint element(__global const ushort* p, const int by_k, const int line,
                           const int lines, const int k, const int K) {
  if (line >= lines || k >= K) return 0;
  return p[by_k ? (size_t)line * K + k : (size_t)k * lines + line];
}

SUBGROUP_KERNEL void matmul_intel_matrix(
    __global const ushort* a, __global const ushort* b, __global const TYPE(BIAS_DTYPE)* bias,
    __global TYPE(Y_DTYPE)* y, const int M, const int N, const int K, const int a_batch,
    const int b_batch) {
  UNIT_SPACE
  a += (size_t)get_group_id(2) * a_batch;
  b += (size_t)get_group_id(2) * b_batch;
  y += (size_t)get_group_id(2) * M * N;
  const int n0 = (int)get_group_id(0) * SG * TN;
  const int m0 = ((int)get_group_id(1) * WAVES + (int)get_local_id(1)) * 8 * TM;

  float8 acc[TM][TN];
  UNROLL
  for (int i = 0; i < TM; ++i) {
    UNROLL
    for (int j = 0; j < TN; ++j) acc[i][j] = 0;
  }
  for (int k0 = 0; k0 < K; k0 += 16) {
    uint b_part[TN][8];
    UNROLL
    for (int j = 0; j < TN; ++j) {
      UNROLL
      for (int r = 0; r < 8; ++r) {
        const int n = n0 + j * SG + LANE, k = k0 + 2 * r;
        b_part[j][r] = element(b, TRANSPOSE_B, n, N, k, K) |
                       element(b, TRANSPOSE_B, n, N, k + 1, K) << 16;
      }
    }
    UNROLL
    for (int i = 0; i < TM; ++i) {
      PAIR a_part[8];
      UNROLL
      for (int r = 0; r < 8; ++r) {
        const int m = m0 + i * 8 + r, k = k0 + A_K;
        a_part[r] = (PAIR)element(a, !TRANSPOSE_A, m, M, k, K);
#if LANE_K == 2
        a_part[r] |= element(a, !TRANSPOSE_A, m, M, k + 1, K) << 16;
#endif
      }
      UNROLL
      for (int j = 0; j < TN; ++j) MULTIPLY_BLOCK(acc[i][j], a_part, b_part[j])
    }
  }

  UNROLL
  for (int i = 0; i < TM; ++i) {
    UNROLL
    for (int j = 0; j < TN; ++j) {
      const int n = n0 + j * SG + LANE;
      float sums[8];
      vstore8(acc[i][j], 0, sums);
      UNROLL
      for (int r = 0; r < 8; ++r) {
        const int m = m0 + i * 8 + r;
        if (m < M && n < N) STORE(Y_DTYPE)(y, (size_t)m * N + n, activate(sums[r] + BIAS(n)));
      }
    }
  }
}
