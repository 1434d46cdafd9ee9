// The register tile that the implicit matrix products share: 16 x 16 work-items, T x T elements
// each, operands in local memory as DEPTH rows of SIDE elements, PITCH vectors apart.
//
// Contract   CLEAR(sum); MULTIPLY(sum, a_tile, b_tile) adds the products of one round;
//            TILE_PLACE(i, l): the row or column of the tile that element i of work-item l is.
// Tunables   T: 2, 4 or 8; DEPTH.
// Order      k in order, one accumulator an element.

#define SIDE (16 * T)
#if T == 2
#define W 2
#define VEC float2
#define PUT_VEC vstore2
#else
#define W 4
#define VEC float4
#define PUT_VEC vstore4
#endif
// One vector of padding a row keeps the transposing stores off one bank.
#define PITCH (SIDE / W + 1)
#define TILE_PLACE(i, l) (((i) / W * 16 + (l)) * W + (i) % W)

#define CLEAR(sum)                                          \
  _Pragma("unroll") for (int i = 0; i < T; ++i) {           \
    _Pragma("unroll") for (int j = 0; j < T; ++j) sum[i][j] = 0; \
  }

#define MULTIPLY(sum, a_tile, b_tile)                                       \
  _Pragma("unroll") for (int k = 0; k < DEPTH; ++k) {                       \
    float a_part[T], b_part[T];                                             \
    _Pragma("unroll") for (int v = 0; v < T / W; ++v) {                     \
      PUT_VEC(a_tile[k * PITCH + 16 * v + ly], v, a_part);                  \
      PUT_VEC(b_tile[k * PITCH + 16 * v + lx], v, b_part);                  \
    }                                                                       \
    _Pragma("unroll") for (int i = 0; i < T; ++i) {                         \
      _Pragma("unroll") for (int j = 0; j < T; ++j)                         \
          sum[i][j] += a_part[i] * b_part[j];                               \
    }                                                                       \
  }
