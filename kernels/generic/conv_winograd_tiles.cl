// What conv_winograd.cl moves between images and panels: the tiles of 2 x 2 outputs, their windows of
// 4 x 4 elements, and the transforms of both.
//
// Contract   sizes, window and TRANSPOSED as in conv_axis.cl; source: X_DTYPE, y: Y_DTYPE.
// Defines    SEGMENT: a power of two from 2 to VECTOR that divides the tiles of a row, or 0: tiles
//            are then transformed four at a time.
// Needs storage.cl, conv_axis.cl, vector.cl and panel.cl before it.

#if TRANSPOSED
#define SOURCE_H sizes.s5
#define SOURCE_W sizes.s6
#define OUT_H sizes.s2
#define OUT_W sizes.s3
#define PADDING_H (2 - window.s4)
#define PADDING_W (2 - window.s5)
#else
#define SOURCE_H sizes.s2
#define SOURCE_W sizes.s3
#define OUT_H sizes.s5
#define OUT_W sizes.s6
#define PADDING_H window.s4
#define PADDING_W window.s5
#endif

// Where the tiles of a panel lie: the first element they read, counted on across borders, the first
// output, and how much of both exists.
typedef struct {
  int read[WIDTH], out[WIDTH], rows[WIDTH], columns[WIDTH];
  int row_mask[4][WIDTH], column_mask[4][WIDTH];  // of the 4 x 4 elements: they exist
  int low, high;                                  // the first and the last of `read`
  int inner, whole;                               // all elements read exist; all outputs do
} winograd_tiles;

static inline void locate_tiles(winograd_tiles* at, const int first, const int tiles,
                                const int8 sizes, const int8 window, const int channels) {
  const int across = (OUT_W + 1) / 2, down = (OUT_H + 1) / 2;
  at->low = INT_MAX;
  at->high = INT_MIN;
  at->inner = at->whole = 1;
  for (int j = 0; j < WIDTH; ++j) {
    const int tile = min(first + j, tiles - 1), exists = first + j < tiles;
    const int line = tile / across, image = line / down;
    const int h = 2 * (line - image * down), w = 2 * (tile - line * across);
    const int top = h - PADDING_H, start = w - PADDING_W;
    at->read[j] = image * GROUPS * channels * SOURCE_H * SOURCE_W + top * SOURCE_W + start;
    at->out[j] = image * GROUPS * OUT_CHANNELS * OUT_H * OUT_W + h * OUT_W + w;
    at->rows[j] = exists ? min(2, OUT_H - h) : 0;
    at->columns[j] = min(2, OUT_W - w);
    at->low = min(at->low, at->read[j]);
    at->high = max(at->high, at->read[j]);
    for (int k = 0; k < 4; ++k) {
      at->row_mask[k][j] = -(exists && top + k >= 0 && top + k < SOURCE_H);
      at->column_mask[k][j] = -(start + k >= 0 && start + k < SOURCE_W);
      at->inner &= at->row_mask[k][j] & at->column_mask[k][j];
    }
    at->whole &= at->rows[j] == 2 && at->columns[j] == 2;
  }
}

// Row r of the window of tile j, without what lies beyond the border. safe: what lies there can be read.
static inline float4 window_row(__global const TYPE(X_DTYPE)* source, const winograd_tiles* at,
                                const int j, const int r, const int width, const int safe) {
  const int row = at->row_mask[r][j];
  const int4 inside = row & (int4)(at->column_mask[0][j], at->column_mask[1][j],
                                   at->column_mask[2][j], at->column_mask[3][j]);
  const int from = at->read[j] + r * width;
  if (safe) return select((float4)0, LOAD4(X_DTYPE)(source, from), inside);
  return (float4)(inside.x ? LOAD(X_DTYPE)(source, from) : 0.0f,
                  inside.y ? LOAD(X_DTYPE)(source, from + 1) : 0.0f,
                  inside.z ? LOAD(X_DTYPE)(source, from + 2) : 0.0f,
                  inside.w ? LOAD(X_DTYPE)(source, from + 3) : 0.0f);
}

// The 16 places of four tiles, one lane a tile.
static inline void transform_four(__global float* places, __global const TYPE(X_DTYPE)* source,
                                  const winograd_tiles* at, const int j, const int width,
                                  const int place, const int safe) {
  float4 row[4][4];
#define READ_ROW(r)                                                                    \
  {                                                                                    \
    const float4 p = window_row(source, at, j, r, width, safe);                              \
    const float4 q = window_row(source, at, j + 1, r, width, safe);                          \
    const float4 s = window_row(source, at, j + 2, r, width, safe);                          \
    const float4 t = window_row(source, at, j + 3, r, width, safe);                          \
    const float4 x0 = (float4)(p.x, q.x, s.x, t.x), x1 = (float4)(p.y, q.y, s.y, t.y); \
    const float4 x2 = (float4)(p.z, q.z, s.z, t.z), x3 = (float4)(p.w, q.w, s.w, t.w); \
    row[r][0] = x0 - x2;                                                               \
    row[r][1] = x1 + x2;                                                               \
    row[r][2] = x2 - x1;                                                               \
    row[r][3] = x1 - x3;                                                               \
  }
  READ_ROW(0) READ_ROW(1) READ_ROW(2) READ_ROW(3)
#undef READ_ROW
#define PUT_COLUMN(k)                                          \
  vstore4(row[0][k] - row[2][k], 0, places + (0 + k) * place); \
  vstore4(row[1][k] + row[2][k], 0, places + (4 + k) * place); \
  vstore4(row[2][k] - row[1][k], 0, places + (8 + k) * place); \
  vstore4(row[1][k] - row[3][k], 0, places + (12 + k) * place);
  PUT_COLUMN(0) PUT_COLUMN(1) PUT_COLUMN(2) PUT_COLUMN(3)
#undef PUT_COLUMN
}

// Transforms four tiles of a filter's sums back and stores them.
static inline void store_four(__global TYPE(Y_DTYPE)* y, const winograd_tiles* at, const int j,
                              const float* sums, const float offset, const int width) {
#define SUM(k) vload4(0, sums + (k) * TILE * WIDTH)
  float4 out[4];
  float4 top[4], bottom[4];
#define ADD_COLUMN(k)                                 \
  top[k] = SUM(k) + SUM(4 + k) + SUM(8 + k);          \
  bottom[k] = SUM(4 + k) - SUM(8 + k) - SUM(12 + k);
  ADD_COLUMN(0) ADD_COLUMN(1) ADD_COLUMN(2) ADD_COLUMN(3)
#undef ADD_COLUMN
#undef SUM
  out[0] = top[0] + top[1] + top[2] + offset;
  out[1] = top[1] - top[2] - top[3] + offset;
  out[2] = bottom[0] + bottom[1] + bottom[2] + offset;
  out[3] = bottom[1] - bottom[2] - bottom[3] + offset;
  const int start = at->out[j];
  if (at->rows[j] == 2 && at->rows[j + 3] == 2 && at->columns[j + 3] == 2 &&
      at->out[j + 3] == start + 6) {
    for (int r = 0; r < 2; ++r) {
      const float4 a = out[2 * r], b = out[2 * r + 1];
      STORE4(Y_DTYPE)(y, start + r * width, (float4)(a.x, b.x, a.y, b.y));
      STORE4(Y_DTYPE)(y, start + r * width + 4, (float4)(a.z, b.z, a.w, b.w));
    }
    return;
  }
  float flat[16];
  for (int k = 0; k < 4; ++k) vstore4(out[k], k, flat);
  for (int t = 0; t < 4; ++t) {
    for (int r = 0; r < at->rows[j + t]; ++r) {
      for (int c = 0; c < at->columns[j + t]; ++c)
        STORE(Y_DTYPE)(y, at->out[j + t] + r * width + c, flat[(2 * r + c) * 4 + t]);
    }
  }
}

#if SEGMENT > 0
// VECTOR tiles at once. They lie in segments of SEGMENT neighbours: twice as many elements of a row,
// of which the even ones are the tiles' first and the odd ones their second.
#define QUAD(p) LOAD4(X_DTYPE)(p, 0)
#define OCT(p) ((float8)(LOAD4(X_DTYPE)(p, 0), LOAD4(X_DTYPE)(p, 4)))
#if SEGMENT == VECTOR
#define FIRST_HALF(at) LOADV(X_DTYPE, from[0] + (at), 0)
#define SECOND_HALF(at) LOADV(X_DTYPE, from[0] + (at), VECTOR)
#elif SEGMENT * 2 == VECTOR
#define FIRST_HALF(at) LOADV(X_DTYPE, from[0] + (at), 0)
#define SECOND_HALF(at) LOADV(X_DTYPE, from[1] + (at), 0)
#elif SEGMENT == 4
#define FIRST_HALF(at) ((FLOATV)(OCT(from[0] + (at)), OCT(from[1] + (at))))
#define SECOND_HALF(at) ((FLOATV)(OCT(from[2] + (at)), OCT(from[3] + (at))))
#elif VECTOR == 8
#define FIRST_HALF(at) ((FLOATV)(QUAD(from[0] + (at)), QUAD(from[1] + (at))))
#define SECOND_HALF(at) ((FLOATV)(QUAD(from[2] + (at)), QUAD(from[3] + (at))))
#else
#define FIRST_HALF(at)                                                        \
  ((FLOATV)(QUAD(from[0] + (at)), QUAD(from[1] + (at)), QUAD(from[2] + (at)), \
            QUAD(from[3] + (at))))
#define SECOND_HALF(at)                                                       \
  ((FLOATV)(QUAD(from[4] + (at)), QUAD(from[5] + (at)), QUAD(from[6] + (at)), \
            QUAD(from[7] + (at))))
#endif
#define SEGMENTS (VECTOR / SEGMENT)

// The 16 places of the tiles j to j + VECTOR - 1.
static inline void transform_lanes(__global float* places, __global const TYPE(X_DTYPE)* source,
                                   const winograd_tiles* at, const int j, const int width,
                                   const int place) {
  FLOATV row[4][4];
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    __global const TYPE(X_DTYPE)* from[SEGMENTS];
#pragma unroll
    for (int s = 0; s < SEGMENTS; ++s) from[s] = source + at->read[j + s * SEGMENT] + r * width;
    const FLOATV a = FIRST_HALF(0), b = SECOND_HALF(0);
    const FLOATV c = FIRST_HALF(2), d = SECOND_HALF(2);
    FLOATV x0 = (FLOATV)(a.even, b.even), x1 = (FLOATV)(a.odd, b.odd);
    FLOATV x2 = (FLOATV)(c.even, d.even), x3 = (FLOATV)(c.odd, d.odd);
    if (!at->inner) {
      const INTV exists = VLOAD(0, at->row_mask[r] + j);
      x0 = select((FLOATV)0, x0, exists & VLOAD(0, at->column_mask[0] + j));
      x1 = select((FLOATV)0, x1, exists & VLOAD(0, at->column_mask[1] + j));
      x2 = select((FLOATV)0, x2, exists & VLOAD(0, at->column_mask[2] + j));
      x3 = select((FLOATV)0, x3, exists & VLOAD(0, at->column_mask[3] + j));
    }
    row[r][0] = x0 - x2;
    row[r][1] = x1 + x2;
    row[r][2] = x2 - x1;
    row[r][3] = x1 - x3;
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    VSTORE(row[0][k] - row[2][k], 0, places + (0 + k) * place);
    VSTORE(row[1][k] + row[2][k], 0, places + (4 + k) * place);
    VSTORE(row[2][k] - row[1][k], 0, places + (8 + k) * place);
    VSTORE(row[1][k] - row[3][k], 0, places + (12 + k) * place);
  }
}

// Transforms VECTOR tiles of a filter's sums back and stores them; all their outputs exist.
static inline void store_lanes(__global TYPE(Y_DTYPE)* y, const winograd_tiles* at, const int j,
                               const float* sums, const float offset, const int width) {
#define SUM(k) VLOAD(0, sums + (k) * TILE * WIDTH)
  FLOATV top[4], bottom[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const FLOATV middle = SUM(4 + k), third = SUM(8 + k);
    top[k] = SUM(k) + middle + third;
    bottom[k] = middle - third - SUM(12 + k);
  }
#undef SUM
  float line[2][2 * VECTOR];
#define PUT_LINE(r, from)                                         \
  {                                                               \
    const FLOATV left = from[0] + from[1] + from[2] + offset;     \
    const FLOATV right = from[1] - from[2] - from[3] + offset;    \
    FLOATV first, second;                                         \
    first.even = left.lo;                                         \
    first.odd = right.lo;                                         \
    second.even = left.hi;                                        \
    second.odd = right.hi;                                        \
    VSTORE(first, 0, line[r]);                                    \
    VSTORE(second, 1, line[r]);                                   \
  }
  PUT_LINE(0, top)
  PUT_LINE(1, bottom)
#undef PUT_LINE
#pragma unroll
  for (int s = 0; s < SEGMENTS; ++s) {
    const int to = at->out[j + s * SEGMENT];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int i = 0; i < 2 * SEGMENT; i += 4)
        STORE4(Y_DTYPE)(y, to + r * width + i, vload4(0, line[r] + 2 * s * SEGMENT + i));
    }
  }
}
#endif
