// The register tile that the implicit matrix products share: 16 x 16 work-items, TM x TN elements
// each, operands in local memory as DEPTH rows of SIDE_M and SIDE_N elements.
//
// Contract   CLEAR(sum); MULTIPLY(sum, a_tile, b_tile) adds the products of one round;
//            PLACE_M(i, l), PLACE_N(j, l): the row or column of the tile that element i or j of
//            work-item l is. LOCAL_TILES declares a_tile and b_tile for BUFFERS rounds; a buffer is
//            SIZE_M, SIZE_N vectors. Element (k, row) of a_tile lies at float k * FLOATS_M + row.
// Defines    TM TN DEPTH PAD AHEAD.
// Tunables   TM, TN: 2, 4 or 8, the sides SIDE_M, SIDE_N are 32, 64 or 128. DEPTH: 8, 16 or 32, a
//            round. PAD: vectors of padding a row, 0 or 1; one keeps transposing stores off one
//            bank. AHEAD 1: a round's elements are fetched into registers while the one before is
//            multiplied, and two buffers need one barrier a round.
// Order      k in order, one accumulator an element.

#define SIDE_M (16 * TM)
#define SIDE_N (16 * TN)
#if TM == 2
#define W_M 2
#define VEC_M float2
#define PUT_M vstore2
#else
#define W_M 4
#define VEC_M float4
#define PUT_M vstore4
#endif
#if TN == 2
#define W_N 2
#define VEC_N float2
#define PUT_N vstore2
#else
#define W_N 4
#define VEC_N float4
#define PUT_N vstore4
#endif
#define PITCH_M (SIDE_M / W_M + PAD)
#define PITCH_N (SIDE_N / W_N + PAD)
#define FLOATS_M (PITCH_M * W_M)
#define FLOATS_N (PITCH_N * W_N)
#define SIZE_M (DEPTH * PITCH_M)
#define SIZE_N (DEPTH * PITCH_N)
#define PLACE_M(i, l) (((i) / W_M * 16 + (l)) * W_M + (i) % W_M)
#define PLACE_N(j, l) (((j) / W_N * 16 + (l)) * W_N + (j) % W_N)
#define BUFFERS (1 + AHEAD)
#define LOCAL_TILES                     \
  __local VEC_M a_tile[BUFFERS * SIZE_M]; \
  __local VEC_N b_tile[BUFFERS * SIZE_N];

#define CLEAR(sum)                                          \
  _Pragma("unroll") for (int i = 0; i < TM; ++i) {           \
    _Pragma("unroll") for (int j = 0; j < TN; ++j) sum[i][j] = 0; \
  }

#define MULTIPLY(sum, a_tile, b_tile)                                       \
  _Pragma("unroll") for (int k = 0; k < DEPTH; ++k) {                       \
    float a_part[TM], b_part[TN];                                           \
    _Pragma("unroll") for (int v = 0; v < TM / W_M; ++v)                    \
        PUT_M((a_tile)[k * PITCH_M + 16 * v + ly], v, a_part);              \
    _Pragma("unroll") for (int v = 0; v < TN / W_N; ++v)                    \
        PUT_N((b_tile)[k * PITCH_N + 16 * v + lx], v, b_part);              \
    _Pragma("unroll") for (int i = 0; i < TM; ++i) {                        \
      _Pragma("unroll") for (int j = 0; j < TN; ++j)                        \
          sum[i][j] += a_part[i] * b_part[j];                               \
    }                                                                       \
  }

// ROUNDS(sum, first, end): all rounds, from product `first` to `end`. The kernel defines
//   ROUND(k0, turn)    declares what the values of the round from product k0 on need
//   A_VALUE(i), A_AT(i), B_VALUE(i), B_AT(i)   the i-th element that a work-item fetches and its
//                      place, as a float of the tile
//   PREPARE(k0, turn)  runs before a barrier that comes before the round's ROUND; turn is 0 or 1
#define FETCHES_A (TM * DEPTH / 16)
#define FETCHES_B (TN * DEPTH / 16)
#define FETCH(k0, turn, A_TO, B_TO)                                           \
  {                                                                           \
    ROUND(k0, turn)                                                           \
    _Pragma("unroll") for (int i = 0; i < FETCHES_A; ++i) A_TO(i) = A_VALUE(i); \
    _Pragma("unroll") for (int i = 0; i < FETCHES_B; ++i) B_TO(i) = B_VALUE(i); \
  }
#if AHEAD
#define A_NEXT(i) a_next[i]
#define B_NEXT(i) b_next[i]
#define ROUNDS(sum, first, end)                                                     \
  float a_next[FETCHES_A], b_next[FETCHES_B];                                       \
  if (first < end) FETCH(first, 0, A_NEXT, B_NEXT)                                  \
  for (int k0 = first, turn = 0; k0 < end; k0 += DEPTH, turn = 1 - turn) {          \
    __local float* a_flat = (__local float*)(a_tile + turn * SIZE_M);               \
    __local float* b_flat = (__local float*)(b_tile + turn * SIZE_N);               \
    _Pragma("unroll") for (int i = 0; i < FETCHES_A; ++i) a_flat[A_AT(i)] = a_next[i]; \
    _Pragma("unroll") for (int i = 0; i < FETCHES_B; ++i) b_flat[B_AT(i)] = b_next[i]; \
    PREPARE(k0 + DEPTH, 1 - turn)                                                   \
    barrier(CLK_LOCAL_MEM_FENCE);                                                   \
    if (k0 + DEPTH < end) FETCH(k0 + DEPTH, 1 - turn, A_NEXT, B_NEXT)               \
    MULTIPLY(sum, a_tile + turn * SIZE_M, b_tile + turn * SIZE_N)                   \
  }
#else
#define A_LOCAL(i) ((__local float*)a_tile)[A_AT(i)]
#define B_LOCAL(i) ((__local float*)b_tile)[B_AT(i)]
#define ROUNDS(sum, first, end)                                            \
  for (int k0 = first, turn = 0; k0 < end; k0 += DEPTH, turn = 1 - turn) { \
    FETCH(k0, turn, A_LOCAL, B_LOCAL)                                      \
    PREPARE(k0 + DEPTH, 1 - turn)                                          \
    barrier(CLK_LOCAL_MEM_FENCE);                                          \
    MULTIPLY(sum, a_tile, b_tile)                                          \
    barrier(CLK_LOCAL_MEM_FENCE);                                          \
  }
#endif
