// matmul for CPUs: tiles of TILE rows times WIDTH = VECTOR * VECTORS columns in registers, over
// panels of b that stay in a near cache.
//
// Contract   a: [M,K] or, TRANSPOSE_A, [K,M]; b: [K,N] or [N,K]; bias: [N] or a stand-in; y: [M,N],
//            f32 if K > kc. Product z of the batch begins at a + z a_batch, b + z b_batch,
//            y + z M N. K may be 0.
// Defines    A_DTYPE B_DTYPE Y_DTYPE, those of matmul_epilogue.cl, TRANSPOSE_A, TRANSPOSE_B.
// Divisible  rows by TILE and columns by WIDTH. Columns beyond N are computed and not stored. Rows
//            beyond M are zeros if a is packed; else the last tile begins earlier, so M >= TILE.
// Tunables   VECTOR (vector.cl), VECTORS, TILE (panel.cl). PACK_A 0: a is read where it is; 1: from
//            packed_a. PACK_B 0: b (f32, not TRANSPOSE_B) is read where it is, but for a last part
//            of a panel; 1: from packed_b; 2: each work-item packs its panels, which saves a launch
//            and finds them in the cache, once more for every further block of rows. Arguments, too:
//            rows, cols: what a work-item computes; rows of a and a panel should stay in the second
//            cache. kc: steps of k at a time; as many as there are save adding to y. pack_k: steps
//            of k that a work-item packs.
// Order      k = 0, 1, ... in one accumulator an element; every kc steps it is added to the sum.
// Needs storage.cl, vector.cl, panel.cl and matmul_epilogue.cl before it.

#define TURN4(T, width, i)                                             \
  {                                                                    \
    const float4 r0 = LOAD4(T)(at, i);                                 \
    const float4 r1 = LOAD4(T)(at, (size_t)stride + i);                \
    const float4 r2 = LOAD4(T)(at, (size_t)2 * stride + i);            \
    const float4 r3 = LOAD4(T)(at, (size_t)3 * stride + i);            \
    vstore4((float4)(r0.x, r1.x, r2.x, r3.x), 0, p + i * width);       \
    vstore4((float4)(r0.y, r1.y, r2.y, r3.y), 0, p + (i + 1) * width); \
    vstore4((float4)(r0.z, r1.z, r2.z, r3.z), 0, p + (i + 2) * width); \
    vstore4((float4)(r0.w, r1.w, r2.w, r3.w), 0, p + (i + 3) * width); \
  }

// Copies `depth` steps of `lanes` numbers to to[step * width + lane]; lanes up to width are zeros.
// Lane j of a step lies at from[j * stride + step]: blocks of 4 x 4 turn in registers, 16 steps at a
// time, which use up what they load of the cache.
#define DEFINE_TURN(NAME, T, width)                                                          \
  static inline void NAME(__global const TYPE(T)* from, __global float* to, const int lanes, \
                          const int stride, const int depth) {                               \
    int k = 0;                                                                               \
    for (; lanes == width && k + 16 <= depth; k += 16) {                                     \
      for (int j = 0; j + 4 <= width; j += 4) {                                              \
        __global const TYPE(T)* at = from + (size_t)j * stride + k;                          \
        __global float* p = to + (size_t)k * width + j;                                      \
        TURN4(T, width, 0) TURN4(T, width, 4) TURN4(T, width, 8) TURN4(T, width, 12)         \
      }                                                                                      \
      for (int j = width / 4 * 4; j < width; ++j)                                            \
        for (int i = k; i < k + 16; ++i)                                                     \
          to[(size_t)i * width + j] = LOAD(T)(from, (size_t)j * stride + i);                 \
    }                                                                                        \
    for (; k < depth; ++k)                                                                   \
      for (int j = 0; j < width; ++j)                                                        \
        to[(size_t)k * width + j] =                                                          \
            j < lanes ? LOAD(T)(from, (size_t)j * stride + k) : 0.0f;                        \
  }

// The same where lane j of a step lies at from[step * stride + j].
#define DEFINE_COPY(NAME, T, width)                                                          \
  static inline void NAME(__global const TYPE(T)* from, __global float* to, const int lanes, \
                          const int stride, const int depth) {                               \
    for (int k = 0; k < depth; ++k, from += stride, to += width) {                           \
      if (lanes == width) {                                                                  \
        for (int j = 0; j + 4 <= width; j += 4) vstore4(LOAD4(T)(from, j), 0, to + j);       \
        for (int j = width / 4 * 4; j < width; ++j) to[j] = LOAD(T)(from, j);                \
      } else {                                                                               \
        for (int j = 0; j < width; ++j) to[j] = j < lanes ? LOAD(T)(from, j) : 0.0f;         \
      }                                                                                      \
    }                                                                                        \
  }

// A strip of a holds STRIP rows: a tile where rows turn; two where they are copied, whole lines.
#if TRANSPOSE_A
#define STRIP (2 * TILE)
DEFINE_COPY(pack_strip, A_DTYPE, STRIP)
#define A_AT(m, k) (a + (size_t)(k) * M + (m))
#define A_STRIDE M
#else
#define STRIP TILE
DEFINE_TURN(pack_strip, A_DTYPE, STRIP)
#define A_AT(m, k) (a + (size_t)(m) * K + (k))
#define A_STRIDE K
#endif
#if TRANSPOSE_B
DEFINE_TURN(pack_panel, B_DTYPE, WIDTH)
#define B_AT(k, n) (b + (size_t)(n) * K + (k))
#define B_STRIDE K
#else
DEFINE_COPY(pack_panel, B_DTYPE, WIDTH)
#define B_AT(k, n) (b + (size_t)(k) * N + (n))
#define B_STRIDE N
#endif

// Panels or strips that a work-item packs: whole pieces of the rows that they are cut from.
#define PANELS 8

// Packs PANELS panels of b or, from panel_groups on, as many strips of a, pack_k steps of them.
// Where k goes first, rows of memory are read in order. Work-item (group, block of k, product).
__kernel void matmul_cpu_pack(__global const TYPE(A_DTYPE)* a, __global const TYPE(B_DTYPE)* b,
                              __global float* packed_a, __global float* packed_b, const int M,
                              const int N, const int K, const int a_batch, const int b_batch,
                              const int pack_k,
                              const int panel_groups) {
  const int z = (int)get_global_id(2), k_begin = pack_k * (int)get_global_id(1);
  const int depth = min(pack_k, K - k_begin);
  int group = (int)get_global_id(0);
  if (group < panel_groups) {
    if (z > 0 && b_batch == 0) return;
    const int end = min((group + 1) * PANELS * WIDTH, N);
    const int step = TRANSPOSE_B ? depth : 1;
    b += (size_t)z * b_batch;
    packed_b += (size_t)z * ((N + WIDTH - 1) / WIDTH * WIDTH) * K;
    for (int k = k_begin; k < k_begin + depth; k += step)
      for (int n = group * PANELS * WIDTH; n < end; n += WIDTH)
        pack_panel(B_AT(k, n), packed_b + (size_t)n * K + (size_t)k * WIDTH, min(WIDTH, N - n),
                   B_STRIDE, step);
  } else {
    group -= panel_groups;
    const int end = min((group + 1) * PANELS * STRIP, M);
    const int step = TRANSPOSE_A ? 1 : depth;
    a += (size_t)z * a_batch;
    packed_a += (size_t)z * ((M + STRIP - 1) / STRIP * STRIP) * K;
    for (int k = k_begin; k < k_begin + depth; k += step)
      for (int m = group * PANELS * STRIP; m < end; m += STRIP)
        pack_strip(A_AT(m, k), packed_a + (size_t)m * K + (size_t)k * STRIP, min(STRIP, M - m),
                   A_STRIDE, step);
  }
}

#if HAS_BIAS
#define BIASV(v) LOADV(BIAS_DTYPE, bias, n0 + (v) * VECTOR)
#else
#define BIASV(v) 0
#endif

// Adds to y what is there from earlier steps, or after the last step bias and activation: a row of
// sums that reaches beyond column N.
static inline void store_part(__global TYPE(Y_DTYPE)* y, __global const TYPE(BIAS_DTYPE)* bias,
                              const float* sums, const int columns, const int add, const int last) {
  for (int j = 0; j < columns; ++j) {
    const float sum = add ? LOAD(Y_DTYPE)(y, j) + sums[j] : sums[j];
    STORE(Y_DTYPE)(y, j, last ? activate(sum + BIAS(j)) : sum);
  }
}

// Work-item (block of rows, block of columns, product).
VECTOR_KERNEL void matmul_cpu_tiles(__global const TYPE(A_DTYPE)* a,
                                    __global const TYPE(B_DTYPE)* b,
                                    __global const TYPE(BIAS_DTYPE)* bias,
                                    __global TYPE(Y_DTYPE)* y, __global float* packed_a,
                                    __global float* packed_b, const int M, const int N,
                                    const int K, const int a_batch, const int b_batch,
                                    const int rows, const int cols, const int kc) {
  const int m_begin = rows * (int)get_global_id(0), m_end = min(m_begin + rows, M);
  const int n_begin = cols * (int)get_global_id(1), n_end = min(n_begin + cols, N);
  a += get_global_id(2) * a_batch;
  b += get_global_id(2) * b_batch;
  y += get_global_id(2) * M * N;
  packed_a += get_global_id(2) * ((M + STRIP - 1) / STRIP * STRIP) * K;
#if PACK_B == 1
  if (b_batch > 0) packed_b += get_global_id(2) * ((N + WIDTH - 1) / WIDTH * WIDTH) * K;
#else
  const size_t item = (get_global_id(2) * get_global_size(1) + get_global_id(1)) *
                          get_global_size(0) + get_global_id(0);
  packed_b += item * WIDTH * min(kc, K);
#endif
  int k0 = 0;
  do {
    const int depth = min(kc, K - k0), last = k0 + depth == K;
    for (int n0 = n_begin; n0 < n_end; n0 += WIDTH) {
      const int columns = min(WIDTH, N - n0);
#if PACK_B == 0
      __global const float* panel = b + (size_t)k0 * N + n0;
      int b_step = N;
      if (columns < WIDTH) {
        pack_panel(B_AT(k0, n0), packed_b, columns, B_STRIDE, depth);
        panel = packed_b;
        b_step = WIDTH;
      }
#else
      const int b_step = WIDTH;
#if PACK_B == 1
      __global const float* panel = packed_b + (size_t)n0 * K + (size_t)k0 * WIDTH;
#else
      pack_panel(B_AT(k0, n0), packed_b, columns, B_STRIDE, depth);
      __global const float* panel = packed_b;
#endif
#endif
      for (int m0 = m_begin; m0 < m_end; m0 += TILE) {
#if PACK_A
        const int top = m0;
        __global const float* ak =
            packed_a + (size_t)(m0 / STRIP * STRIP) * K + (size_t)k0 * STRIP + m0 % STRIP;
#define A_STEP STRIP
#define A_OF(r) ak[r]
#else
        const int top = min(m0, M - TILE);
#if TRANSPOSE_A
        __global const TYPE(A_DTYPE)* ak = A_AT(top, k0);
#define A_STEP M
#define A_OF(r) LOAD(A_DTYPE)(ak, r)
#else
#define START(r) __global const TYPE(A_DTYPE)* a##r = A_AT(top + r, k0);
        EACH_ROW(START)
#define A_STEP 0
#define A_OF(r) LOAD(A_DTYPE)(a##r, k)
#endif
#endif
        CLEAR_SUMS
        __global const float* bk = panel;
        for (int k = 0; k < depth; ++k) {
#define LOAD_B(r, v) const FLOATV b##v = VLOAD(v, bk);
          EACH_SUM(LOAD_B, 0)
#define MULTIPLY_ADD(r, v) sum_##r##_##v += s * b##v;
#define ADD(r)                \
  {                           \
    const float s = A_OF(r);  \
    EACH_SUM(MULTIPLY_ADD, r) \
  }
          EACH_ROW(ADD)
          bk += b_step;
#if PACK_A || TRANSPOSE_A
          ak += A_STEP;
#endif
        }
        __global TYPE(Y_DTYPE)* to = y + (size_t)top * N + n0;
        if (columns == WIDTH) {
#define OWN(r) (top + r >= m0 && top + r < m_end)
#define ADD_OLD(r, v) sum_##r##_##v += LOADV(Y_DTYPE, to + (size_t)r * N, (v) * VECTOR);
#define ADD_OLD_ROW(r) \
  if (OWN(r)) { EACH_SUM(ADD_OLD, r) }
          if (k0 > 0) { EACH_ROW(ADD_OLD_ROW) }
#define FINISH(r, v) sum_##r##_##v = activate_vector(sum_##r##_##v + BIASV(v));
#define FINISH_ROW(r) EACH_SUM(FINISH, r)
          if (last) { EACH_ROW(FINISH_ROW) }
#define STORE_SUM(r, v) STOREV(Y_DTYPE, to + (size_t)r * N, (v) * VECTOR, sum_##r##_##v)
#define STORE_ROW(r) \
  if (OWN(r)) { EACH_SUM(STORE_SUM, r) }
          EACH_ROW(STORE_ROW)
        } else {
          float sums[WIDTH];
#define KEEP_SUM(r, v) VSTORE(sum_##r##_##v, v, sums);
#define STORE_PART(r)                                                              \
  if (OWN(r)) {                                                                    \
    EACH_SUM(KEEP_SUM, r)                                                          \
    store_part(to + (size_t)r * N, bias + (HAS_BIAS ? n0 : 0), sums, columns, k0 > 0, last); \
  }
          EACH_ROW(STORE_PART)
        }
      }
    }
    k0 += kc;
  } while (k0 < K);
}
