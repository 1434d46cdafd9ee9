// What attention for CPUs is made of: own rows (queries, or keys), one a lane of WIDTH, meet the others
// row by row where they lie, so that nothing is packed and sums over the others stay in lanes.
//
// Use        take_lanes, products, add_products, put_lanes below; LANES(v): the numbers of the lanes of
//            vector v. BLOCK: rows of the others at a time, a multiple of each TILE.
// Contract   x: X_DTYPE [rows, D].
// Defines    D: features; X_DTYPE; those of panel.cl.
// Divisible  nothing; D is at most 1024, as the own rows lie on the stack. Lanes beyond the last own row
//            hold that row again.
// Tunables   those of panel.cl.
// Order      products: d in order; sums: the others in order, in one accumulator an element.
// Needs storage.cl, vector.cl and panel.cl before it.

#define BLOCK 48
#define PADDED_D ((D + TILE - 1) / TILE * TILE)

__constant int lane_numbers[48] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                   16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
                                   32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47};
#define LANES(v) VLOAD(v, lane_numbers)

// to[d][WIDTH]: rows `first` on of x, times `factor`.
static inline void take_lanes(float* to, __global const TYPE(X_DTYPE)* x, const int first,
                              const int count, const float factor) {
  for (int lane = 0; lane < WIDTH; ++lane) {
    const size_t from = (size_t)min(first + lane, count - 1) * D;
    for (int d = 0; d < D; ++d) to[d * WIDTH + lane] = LOAD(X_DTYPE)(x, from + d) * factor;
  }
}

// out[j][WIDTH] = row j of x times the own rows, j < count; rows of `out` are there up to a whole TILE.
static inline void products(float* out, __global const TYPE(X_DTYPE)* x, const int count,
                            const float* own) {
  for (int j = 0; j < count; j += TILE) {
#define ROW_OF_X(r) __global const TYPE(X_DTYPE)* x##r = x + (size_t)min(j + r, count - 1) * D;
    EACH_ROW(ROW_OF_X)
    CLEAR_SUMS
    for (int d = 0; d < D; ++d) {
#define TAKE_OWN(r, v) const FLOATV own_##v = VLOAD(v, own + d * WIDTH);
      EACH_SUM(TAKE_OWN, 0)
#define ADD_OWN(r, v) sum_##r##_##v += number * own_##v;
#define ADD_OWNS(r)                           \
  {                                           \
    const float number = LOAD(X_DTYPE)(x##r, d); \
    EACH_SUM(ADD_OWN, r)                      \
  }
      EACH_ROW(ADD_OWNS)
    }
#define KEEP_PRODUCT(r, v) VSTORE(sum_##r##_##v, v, out + (j + r) * WIDTH);
#define KEEP_PRODUCTS(r) EACH_SUM(KEEP_PRODUCT, r)
    EACH_ROW(KEEP_PRODUCTS)
  }
}

// sums[d][WIDTH] = sums * factor[WIDTH] + sum of x[j][d] weights[j][WIDTH], j < count.
static inline void add_products(float* sums, const float* factor,
                                __global const TYPE(X_DTYPE)* x, const int count,
                                const float* weights) {
  for (int d = 0; d < D; d += TILE) {
#define TAKE_SUM(r, v) FLOATV sum_##r##_##v = VLOAD(v, factor) * VLOAD(v, sums + (d + r) * WIDTH);
#define TAKE_SUMS(r) EACH_SUM(TAKE_SUM, r)
    EACH_ROW(TAKE_SUMS)
    for (int j = 0; j < count; ++j) {
#define TAKE_WEIGHT(r, v) const FLOATV weight_##v = VLOAD(v, weights + j * WIDTH);
      EACH_SUM(TAKE_WEIGHT, 0)
#define ADD_WEIGHT(r, v) sum_##r##_##v += number * weight_##v;
#define ADD_WEIGHTS(r)                                                        \
  {                                                                           \
    const float number = LOAD(X_DTYPE)(x, (size_t)j * D + min(d + r, D - 1)); \
    EACH_SUM(ADD_WEIGHT, r)                                                   \
  }
      EACH_ROW(ADD_WEIGHTS)
    }
#define KEEP_SUM(r, v) VSTORE(sum_##r##_##v, v, sums + (d + r) * WIDTH);
#define KEEP_SUMS(r) EACH_SUM(KEEP_SUM, r)
    EACH_ROW(KEEP_SUMS)
  }
}

// The `count` first lanes of sums [d][WIDTH], times factor[WIDTH], to rows of y.
static inline void put_lanes(__global TYPE(X_DTYPE)* y, const float* sums, const int count,
                             const float* factor) {
  for (int lane = 0; lane < count; ++lane) {
    for (int d = 0; d < D; ++d)
      STORE(X_DTYPE)(y, (size_t)lane * D + d, sums[d * WIDTH + lane] * factor[lane]);
  }
}
