// argmax of floats for CPUs: rows in vectors, or neighbouring columns.
//
// Contract   that of argmax.cl.
// Defines    X_DTYPE VECTOR TILE.
// Divisible  nothing.
// Tunables   VECTOR (vector.cl), TILE (lines.cl). Argument rows: rows a work-item.
// Order      the result does not depend on it: ties are decided by the index.
// NaN        counts as the greatest.
// Needs storage.cl, vector.cl, parts.cl and lines.cl before it.

// Of lanes that hold the greatest of every VECTOR-th element, and where theirs begin.
static inline int first_of_greatest(const FLOATV v, const INTV begins) {
  float values[VECTOR];
  int places[VECTOR];
  VSTORE(v, 0, values);
  VSTORE(begins, 0, places);
  float best = values[0];
  int place = places[0];
  for (int j = 1; j < VECTOR; ++j) {
    const int equal = values[j] == best || (isnan(values[j]) && isnan(best));
    const int above = !isnan(best) && !(values[j] <= best);
    if (above || (equal && places[j] + j < place)) {
      best = values[j];
      place = places[j] + j;
    }
  }
  return place;
}

LINES_INLINE void argmax_lines(__global const TYPE(X_DTYPE)* x, __global int* y, const Lines l) {
  FLOATV best[TILE];
  INTV places[TILE];
  EACH_OF_TILE {
    best[k] = -INFINITY;
    places[k] = 0;
  }
#define RAISE(at, k, left, r)                                       \
  {                                                                 \
    const FLOATV v = LOADP(X_DTYPE)(x + at, left, -INFINITY);       \
    const INTV above = ~(v <= best[k]) & (best[k] == best[k]);      \
    best[k] = select(best[k], v, above);                            \
    places[k] = select(places[k], (INTV)(r), above);                \
  }
  PASS(RAISE, NOTHING)
  EACH_OF_TILE {
    if (l.along) {
      y[k] = first_of_greatest(best[k], places[k]);
    } else {
      int lanes[VECTOR];
      VSTORE(places[k], 0, lanes);
      for (int j = 0; j < l.left; ++j) y[k * VECTOR + j] = lanes[j];
    }
  }
}

VECTOR_KERNEL void argmax_cpu_rows(__global const TYPE(X_DTYPE)* x, __global int* y, const int outer,
                                   const int reduce, const int rows) {
  FOR_ROWS(argmax_lines(x + at, y + result, lines))
}

VECTOR_KERNEL void argmax_cpu_columns(__global const TYPE(X_DTYPE)* x, __global int* y,
                                      const int reduce, const int inner) {
  FOR_COLUMNS(argmax_lines(x + at, y + result, lines))
}
