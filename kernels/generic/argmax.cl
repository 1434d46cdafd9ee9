// argmax: x seen as [outer, reduce, inner] -> y i32 [outer, inner], the index of the greatest
// element; the first of equal ones wins, NaN counts as the greatest. reduce == 0 gives 0.
//
// Contract   x: X_DTYPE, y: int.
// Defines    X_DTYPE; VALUE, in which elements are compared (float; long for i64, int for other
//            integers), with VALUE_IS_FLOAT; GROUP (group kernel). Needs storage.cl before it.
// Divisible  nothing.
// Tunables   group: GROUP, 32 to 512. column: LOCAL, the local size, 32 to 256.
// Order      the result does not depend on it: ties are decided by the index.

#if VALUE_IS_FLOAT
static inline int above(const float a, const float b) { return a > b || (isnan(a) && !isnan(b)); }
#else
static inline int above(const VALUE a, const VALUE b) { return a > b; }
#endif

__kernel void argmax_generic_column(__global const TYPE(X_DTYPE)* x, __global int* y,
                                    const int results, const int reduce, const int inner) {
  const int i = (int)get_global_id(0);
  if (i >= results) return;
  const int o = i / inner;
  x += (size_t)o * reduce * inner + (i - o * inner);
  int best = 0;
  if (reduce > 0) {
    VALUE best_value = LOAD(X_DTYPE)(x, 0);
    for (int r = 1; r < reduce; ++r) {
      const VALUE v = LOAD(X_DTYPE)(x, (size_t)r * inner);
      if (above(v, best_value)) {
        best_value = v;
        best = r;
      }
    }
  }
  y[i] = best;
}

#ifdef GROUP
// One work-group a row (inner == 1, reduce > 0).
__kernel void argmax_generic_group(__global const TYPE(X_DTYPE)* x, __global int* y,
                                   const int reduce) {
  __local VALUE values[GROUP];
  __local int places[GROUP];
  const int o = (int)get_group_id(0);
  const int t = (int)get_local_id(0);
  x += (size_t)o * reduce;
  int best = min(t, reduce - 1);
  VALUE best_value = LOAD(X_DTYPE)(x, best);
  for (int r = t + GROUP; r < reduce; r += GROUP) {
    const VALUE v = LOAD(X_DTYPE)(x, r);
    if (above(v, best_value)) {
      best_value = v;
      best = r;
    }
  }
  values[t] = best_value;
  places[t] = best;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
    if (t < half_size) {
      const VALUE v = values[t + half_size];
      const int p = places[t + half_size];
      const int wins = above(v, values[t]) || (!above(values[t], v) && p < places[t]);
      if (wins) {
        values[t] = v;
        places[t] = p;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (t == 0) y[o] = places[0];
}
#endif
