// cumsum: running sums along an axis; x seen as [outer, reduce, inner].
//
// Contract   x: X_DTYPE, y: Y_DTYPE, of one shape. reverse: from the end of the axis.
// Defines    X_DTYPE Y_DTYPE. Needs storage.cl before it.
// Divisible  nothing. One work-item a line; neighbours read neighbouring addresses when inner > 1.
// Order      in the order of the axis (from its end), in f32.

__kernel void cumsum_generic_line(__global const TYPE(X_DTYPE)* x, __global TYPE(Y_DTYPE)* y,
                                  const int lines, const int reduce, const int inner,
                                  const int reverse) {
  const int i = (int)get_global_id(0);
  if (i >= lines) return;
  const int o = i / inner;
  const size_t first = (size_t)o * reduce * inner + (i - o * inner);
  float sum = 0;
  for (int r = 0; r < reduce; ++r) {
    const size_t at = first + (size_t)(reverse ? reduce - 1 - r : r) * inner;
    sum += LOAD(X_DTYPE)(x, at);
    STORE(Y_DTYPE)(y, at, sum);
  }
}
