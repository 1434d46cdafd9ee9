// concat for CPUs: all inputs in one launch, rows in loops that may be vectorised.
//
// Contract   input k is a block of length k elements at "at" k of each of `outer` rows of y, which
//            have `row` elements; absent inputs are stand-ins, never read. `rows`: rows a work-item.
// Defines    X_DTYPE Y_DTYPE, one type; SPAN.
// Divisible  nothing.
// Tunables   SPAN: 1024 or 4096 elements of a block at a time.
// Order      none: one element each.
// Needs loop.cl and storage.cl before it.

#define INPUT(k) __global const TYPE(X_DTYPE)* x##k
#define BLOCK(k) const int length##k, const int at##k

// Work-item (span of the block, input, rows).
__kernel void concat_cpu_spans(INPUT(0), INPUT(1), INPUT(2), INPUT(3), INPUT(4), INPUT(5), INPUT(6),
                               INPUT(7), __global TYPE(Y_DTYPE)* y, const int outer,
                               const int rows, const int row, BLOCK(0), BLOCK(1), BLOCK(2),
                               BLOCK(3), BLOCK(4), BLOCK(5), BLOCK(6), BLOCK(7)) {
  const int k = (int)get_global_id(1), first = SPAN * (int)get_global_id(0);
  const int lengths[8] = {length0, length1, length2, length3, length4, length5, length6, length7};
  const int starts[8] = {at0, at1, at2, at3, at4, at5, at6, at7};
  const int length = lengths[k], end = min(first + SPAN, length);
  INPUT() = k == 0 ? x0
            : k == 1 ? x1
            : k == 2 ? x2
            : k == 3 ? x3
            : k == 4 ? x4
            : k == 5 ? x5
            : k == 6 ? x6
                     : x7;
  const int begin = rows * (int)get_global_id(2);
  for (int o = begin; o < min(begin + rows, outer); ++o) {
    __global const TYPE(X_DTYPE)* from = x + (size_t)o * length;
    __global TYPE(Y_DTYPE)* to = y + (size_t)o * row + starts[k];
    INDEPENDENT
    for (int i = first; i < end; ++i) STORE(Y_DTYPE)(to, i, LOAD(X_DTYPE)(from, i));
  }
}
