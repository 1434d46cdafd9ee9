// var: x seen as [outer, reduce, inner] -> y [outer, inner], the mean squared distance from the
// mean, with divisor max(0, reduce - correction): too few elements give 0 / 0 or
// infinity, as in PyTorch.
//
// Contract   x: X_DTYPE, y: Y_DTYPE. Two passes: the mean first, then the squares of
//            the differences.
// Defines    X_DTYPE Y_DTYPE; GROUP (group kernel). Needs storage.cl and,
//            for the group, group_reduce.cl before it.
// Divisible  nothing.
// Tunables   group: GROUP, 32 to 512. column: LOCAL, the local size, 32 to 256.
// Order      column: blocks of 128 in order. group: strided partial sums, then a tree.

#define BLOCK 128

__kernel void var_generic_column(__global const TYPE(X_DTYPE)* x, __global TYPE(Y_DTYPE)* y,
                                 const int results, const int reduce, const int inner,
                                 const int correction) {
  const int i = (int)get_global_id(0);
  if (i >= results) return;
  const int o = i / inner;
  x += (size_t)o * reduce * inner + (i - o * inner);
  float sum = 0;
  for (int begin = 0; begin < reduce; begin += BLOCK) {
    const int end = min(begin + BLOCK, reduce);
    float block = 0;
    for (int r = begin; r < end; ++r) block += LOAD(X_DTYPE)(x, (size_t)r * inner);
    sum += block;
  }
  const float mean = sum / (float)reduce;
  float squares = 0;
  for (int begin = 0; begin < reduce; begin += BLOCK) {
    const int end = min(begin + BLOCK, reduce);
    float block = 0;
    for (int r = begin; r < end; ++r) {
      const float d = LOAD(X_DTYPE)(x, (size_t)r * inner) - mean;
      block += d * d;
    }
    squares += block;
  }
  STORE(Y_DTYPE)(y, i, squares / (float)max(reduce - correction, 0));
}

#ifdef GROUP
// One work-group a row (inner == 1).
__kernel void var_generic_group(__global const TYPE(X_DTYPE)* x, __global TYPE(Y_DTYPE)* y,
                                const int reduce, const int correction) {
  __local float parts[GROUP];
  const int o = (int)get_group_id(0);
  const int t = (int)get_local_id(0);
  x += (size_t)o * reduce;
  float acc = 0;
  for (int r = t; r < reduce; r += GROUP) acc += LOAD(X_DTYPE)(x, r);
  const float mean = group_sum(acc, parts) / (float)reduce;
  acc = 0;
  for (int r = t; r < reduce; r += GROUP) {
    const float d = LOAD(X_DTYPE)(x, r) - mean;
    acc += d * d;
  }
  const float squares = group_sum(acc, parts);
  if (t == 0) STORE(Y_DTYPE)(y, o, squares / (float)max(reduce - correction, 0));
}
#endif
