// matmul by sub-groups: each computes TM rows and SG * TN columns of y, a work-item TM x TN elements
// of them; what the sub-group has read of a goes from work-item to work-item without local memory.
//
// Contract   a: [M,K] or, TRANSPOSE_A, [K,M]; b: [K,N] or, TRANSPOSE_B, [N,K]; bias: [N] or a
//            stand-in; y: [M,N]. K may be 0. Product z of the batch begins at a + z a_batch,
//            b + z b_batch, y + z M N. Group (x, y, z), sub-group w: columns SG * TN * x ..., rows
//            TM * (WAVES * y + w) ... of product z.
// Defines    A_DTYPE B_DTYPE Y_DTYPE, those of matmul_epilogue.cl, TRANSPOSE_A TRANSPOSE_B.
// Divisible  nothing: what lies outside is not stored.
// Tunables   SG WAVES: subgroup.cl. TM: 4 or 8, TN: 1, 2 or 4.
// Order      k = 0, 1, ... in one accumulator an element.
// Needs storage.cl, subgroup.cl and matmul_epilogue.cl before it.

// A round takes DEPTH columns of a. Its work-items hold PARTS values of them each: a row a value, or,
// where rows of a^T lie together, a column.
#if TRANSPOSE_A
#define DEPTH 8
#define PARTS DEPTH
#define A_PART(i) a_value(a, min(m0 + LANE, M - 1), k0 + i, M, K)
#define A_SHARED(m, k) SHARED(a_part, k, m)
#else
#define DEPTH SG
#define PARTS TM
#define A_PART(i) a_value(a, min(m0 + i, M - 1), k0 + LANE, M, K)
#define A_SHARED(m, k) SHARED(a_part, m, k)
#endif

static inline float a_value(__global const TYPE(A_DTYPE)* a, const int row, const int k,
                            const int M, const int K) {
  if (k >= K) return 0.0f;
#if TRANSPOSE_A
  return LOAD(A_DTYPE)(a, (size_t)k * M + row);
#else
  return LOAD(A_DTYPE)(a, (size_t)row * K + k);
#endif
}

// b[k][n0 + j SG + LANE] ...; `whole`: all SG * TN columns exist.
#define COLUMN(j) (n0 + (j) * SG + LANE)
#if TRANSPOSE_B
#define B_VALUE(k, j) LOAD(B_DTYPE)(b, (size_t)min(COLUMN(j), N - 1) * K + (k))
#elif B_IS_F32
#define B_VALUE(k, j)                                      \
  (whole ? READ_ROW(b + (size_t)(k) * N + n0 + (j) * SG)   \
         : b[(size_t)(k) * N + min(COLUMN(j), N - 1)])
#else
#define B_VALUE(k, j) LOAD(B_DTYPE)(b, (size_t)(k) * N + min(COLUMN(j), N - 1))
#endif
#define ADD_PRODUCTS(k)                                                   \
  {                                                                       \
    float b_row[TN];                                                      \
    UNROLL for (int j = 0; j < TN; ++j) b_row[j] = B_VALUE(k0 + (k), j); \
    UNROLL for (int i = 0; i < TM; ++i) {                      \
      const float s = A_SHARED(i, k);                                     \
      UNROLL for (int j = 0; j < TN; ++j) sum[i][j] += s * b_row[j]; \
    }                                                                     \
  }

SUBGROUP_KERNEL void matmul_intel_subgroup(
    __global const TYPE(A_DTYPE)* a, __global const TYPE(B_DTYPE)* b,
    __global const TYPE(BIAS_DTYPE)* bias, __global TYPE(Y_DTYPE)* y, const int M, const int N,
    const int K, const int a_batch, const int b_batch) {
  SHARE_SPACE(float, PARTS)
  a += (size_t)get_group_id(2) * a_batch;
  b += (size_t)get_group_id(2) * b_batch;
  y += (size_t)get_group_id(2) * M * N;
  const int n0 = (int)get_group_id(0) * SG * TN;
  const int m0 = ((int)get_group_id(1) * WAVES + (int)get_local_id(1)) * TM;
  const int whole = n0 + SG * TN <= N;

  float sum[TM][TN];
  UNROLL
  for (int i = 0; i < TM; ++i) {
    UNROLL
    for (int j = 0; j < TN; ++j) sum[i][j] = 0;
  }
  for (int k0 = 0; k0 < K; k0 += DEPTH) {
    float a_part[PARTS];
    UNROLL
    for (int i = 0; i < PARTS; ++i) a_part[i] = A_PART(i);
    SHARE(PARTS, a_part)
    if (k0 + DEPTH <= K) {
      UNROLL
      for (int k = 0; k < DEPTH; ++k) ADD_PRODUCTS(k)
    } else {
      UNROLL
      for (int k = 0; k < DEPTH; ++k) {
        if (k0 + k < K) ADD_PRODUCTS(k)
      }
    }
    SHARED_USED
  }
  UNROLL
  for (int i = 0; i < TM; ++i) {
    if (m0 + i >= M) continue;
    UNROLL
    for (int j = 0; j < TN; ++j) {
      const int n = COLUMN(j);
      if (n < N) STORE(Y_DTYPE)(y, (size_t)(m0 + i) * N + n, activate(sum[i][j] + BIAS(n)));
    }
  }
}
