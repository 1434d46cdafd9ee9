// slice, pad and concat: elements moved by position.
//
// Contract   slice: y element with indices i of dims lies at x[offset + sum i strides].
//            pad: y element with indices j of dims is x[(j - lows) / steps] where that is a whole
//            number inside in_dims for every dimension, else value.
//            concat: input i is a block of `length` elements at `at` of every row of y.
//            dims and the other lists are right-aligned; leading dimensions are 1.
// Defines    X_DTYPE Y_DTYPE, one type. Needs storage.cl before it.
// Divisible  nothing.
// Order      none: one element each.

__kernel void slice_generic_strided(__global const TYPE(X_DTYPE)* x, __global TYPE(Y_DTYPE)* y,
                                    const int n, const int offset, const int8 dims,
                                    const int8 strides) {
  const int i = (int)get_global_id(0);
  if (i >= n) return;
  int rest = i, at = offset;
#define PEEL(d)                                   \
  if (dims.s##d > 1) {                            \
    const int next = rest / dims.s##d;            \
    at += (rest - next * dims.s##d) * strides.s##d; \
    rest = next;                                  \
  }
  PEEL(7) PEEL(6) PEEL(5) PEEL(4) PEEL(3) PEEL(2) PEEL(1) PEEL(0)
#undef PEEL
  STORE(Y_DTYPE)(y, i, LOAD(X_DTYPE)(x, at));
}

__kernel void pad_generic_spread(__global const TYPE(X_DTYPE)* x, __global TYPE(Y_DTYPE)* y,
                                 const int n, const float value, const int8 dims,
                                 const int8 in_dims, const int8 lows, const int8 steps) {
  const int i = (int)get_global_id(0);
  if (i >= n) return;
  int rest = i, at = 0, stride = 1, inside = 1;
#define PEEL(d)                                            \
  if (dims.s##d > 1 || in_dims.s##d != 1) {                \
    const int next = rest / dims.s##d;                     \
    const int from = rest - next * dims.s##d - lows.s##d;  \
    const int whole = from / steps.s##d;                   \
    inside &= from >= 0 && whole * steps.s##d == from && whole < in_dims.s##d; \
    at += whole * stride;                                  \
    stride *= in_dims.s##d;                                \
    rest = next;                                           \
  }
  PEEL(7) PEEL(6) PEEL(5) PEEL(4) PEEL(3) PEEL(2) PEEL(1) PEEL(0)
#undef PEEL
  if (inside) {
    STORE(Y_DTYPE)(y, i, LOAD(X_DTYPE)(x, at));
  } else {
    STORE(Y_DTYPE)(y, i, value);
  }
}

__kernel void concat_generic_block(__global const TYPE(X_DTYPE)* x, __global TYPE(Y_DTYPE)* y,
                                   const int n, const int length, const int row, const int at) {
  const int i = (int)get_global_id(0);
  if (i >= n) return;
  const int o = i / length;
  STORE(Y_DTYPE)(y, (size_t)o * row + at + (i - o * length), LOAD(X_DTYPE)(x, i));
}
