// Means, and sums of squared distances from them, of lines.
//
// Use        moments(x, reduce, about_zero, l, means, squares): x is the first element of the first line.
//            about_zero: 1 for distances from 0, which the means then are.
// Defines    X_DTYPE TILE.
// Order      the mean first, then the squared distances; each in blocks of 128 vectors.
// Needs storage.cl, vector.cl, parts.cl and lines.cl before it.

LINES_INLINE void moments(__global const TYPE(X_DTYPE)* x, const int reduce, const int about_zero,
                          const Lines l, FLOATV* means, FLOATV* squares) {
  FLOATV means_block[TILE], squares_block[TILE];
  EACH_OF_TILE means[k] = squares[k] = means_block[k] = squares_block[k] = 0;
#define MOMENTS_NEXT_MEAN(k) ADD_BLOCK(means, k)
#define MOMENTS_NEXT_SQUARES(k) ADD_BLOCK(squares, k)
#define MOMENTS_MEAN(at, k, left, r) means_block[k] += LOADP(X_DTYPE)(x + at, left, 0.0f);
#define MOMENTS_SQUARES(at, k, left, r)                                      \
  {                                                                          \
    const FLOATV d = LOADP(X_DTYPE)(x + at, left, means[k].s0) - means[k];   \
    squares_block[k] += d * d;                                               \
  }
  if (!about_zero) {
    PASS(MOMENTS_MEAN, MOMENTS_NEXT_MEAN)
    EACH_OF_TILE means[k] = FOLD(means, k, sum_of) / (float)reduce;
  }
  PASS(MOMENTS_SQUARES, MOMENTS_NEXT_SQUARES)
  EACH_OF_TILE squares[k] = FOLD(squares, k, sum_of);
}
