// argmax: x seen as [outer, reduce, inner] -> y i32 [outer, inner], the index of the greatest
// element; the first of equal ones wins, NaN counts as the greatest. reduce == 0 gives 0.
//
// Contract   x: X_TYPE, y: int.
// Defines    X_TYPE, X_IS_FLOAT; GROUP (group kernel).
// Divisible  nothing.
// Order      the result does not depend on it: ties are decided by the index.

#if X_IS_FLOAT
static inline int above(const float a, const float b) { return a > b || (isnan(a) && !isnan(b)); }
#else
static inline int above(const X_TYPE a, const X_TYPE b) { return a > b; }
#endif

__kernel void argmax_generic_column(__global const X_TYPE* x, __global int* y, const int results,
                                    const int reduce, const int inner) {
  const int i = (int)get_global_id(0);
  if (i >= results) return;
  const int o = i / inner;
  x += (size_t)o * reduce * inner + (i - o * inner);
  int best = 0;
  if (reduce > 0) {
    X_TYPE best_value = x[0];
    for (int r = 1; r < reduce; ++r) {
      const X_TYPE v = x[(size_t)r * inner];
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
__kernel void argmax_generic_group(__global const X_TYPE* x, __global int* y, const int reduce) {
  __local X_TYPE values[GROUP];
  __local int places[GROUP];
  const int o = (int)get_group_id(0);
  const int t = (int)get_local_id(0);
  x += (size_t)o * reduce;
  int best = min(t, reduce - 1);
  X_TYPE best_value = x[best];
  for (int r = t + GROUP; r < reduce; r += GROUP) {
    const X_TYPE v = x[r];
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
      const X_TYPE v = values[t + half_size];
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
