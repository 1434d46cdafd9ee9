// sum, mean, max_reduce, min_reduce: x seen as [outer, reduce, inner] -> y [outer, inner].
//
// Contract   x: X_DTYPE, y: Y_DTYPE. reduce may be 0: sum 0, mean NaN, max and min the
//            neutral value.
// Defines    X_DTYPE Y_DTYPE; ACC, the accumulator (float; long for i64, int for other integers),
//            with ACC_IS_FLOAT and ACC_IS_LONG; OP: OP_sum OP_mean OP_max_reduce OP_min_reduce;
//            GROUP (group kernel); LANES ROWS (lanes). Needs storage.cl before it.
// Divisible  nothing.
// Tunables   lanes: LANES, 8 or 16; ROWS: rows a work-item (lanes_row), 1 to 64. group: GROUP, 32 to
//            512. column: LOCAL, the local size, 32 to 256.
// Order      column and lanes: blocks of 128 elements, summed in order, then the blocks in order
//            (the error grows with the square root of what plain summing would give).
//            lanes: LANES interleaved partial sums of a row, then a fixed tree. group: work-item t takes
//            elements t, t + GROUP, ...; then a tree. No atomics: the same bits every run.
// NaN        spreads through max and min too.

#define OP_sum 0
#define OP_mean 1
#define OP_max_reduce 2
#define OP_min_reduce 3

#if ACC_IS_FLOAT
#define LOWEST (-INFINITY)
#define HIGHEST INFINITY
#define IS_NAN(v) isnan(v)
#elif ACC_IS_LONG
#define LOWEST LONG_MIN
#define HIGHEST LONG_MAX
#define IS_NAN(v) 0
#else
#define LOWEST INT_MIN
#define HIGHEST INT_MAX
#define IS_NAN(v) 0
#endif

#if OP == OP_max_reduce
#define FIRST LOWEST
static inline ACC combine(const ACC acc, const ACC x) { return (x > acc || IS_NAN(x)) ? x : acc; }
#elif OP == OP_min_reduce
#define FIRST HIGHEST
static inline ACC combine(const ACC acc, const ACC x) { return (x < acc || IS_NAN(x)) ? x : acc; }
#else
#define FIRST 0
static inline ACC combine(const ACC acc, const ACC x) { return acc + x; }
#endif

#if OP == OP_mean
#define FINISH(acc, n) ((acc) / (ACC)(n))
#else
#define FINISH(acc, n) (acc)
#endif

#define READ(p, i) (ACC)LOAD(X_DTYPE)(p, i)
#define BLOCK 128

// One work-item a result; neighbours read neighbouring addresses when inner > 1.
__kernel void reduce_generic_column(__global const TYPE(X_DTYPE)* x, __global TYPE(Y_DTYPE)* y,
                                    const int results, const int reduce, const int inner) {
  const int i = (int)get_global_id(0);
  if (i >= results) return;
  const int o = i / inner;
  x += (size_t)o * reduce * inner + (i - o * inner);
  ACC total = FIRST;
  for (int begin = 0; begin < reduce; begin += BLOCK) {
    const int end = min(begin + BLOCK, reduce);
    ACC block = FIRST;
    for (int r = begin; r < end; ++r) block = combine(block, READ(x, (size_t)r * inner));
    total = combine(total, block);
  }
  STORE(Y_DTYPE)(y, i, FINISH(total, reduce));
}

#ifdef LANES
// LANES partial results: a CPU keeps them in vectors. Of a row (inner == 1) they are interleaved and
// folded; of a column they are neighbouring columns.
#define EACH8(M) M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7)
#if LANES == 16
#define EACH_LANE(M) EACH8(M) M(8) M(9) M(10) M(11) M(12) M(13) M(14) M(15)
#else
#define EACH_LANE(M) EACH8(M)
#endif
#define FIRST_TOTAL(k) ACC t##k = FIRST;
#define FIRST_OF_BLOCK(k) ACC b##k = FIRST;
#define ADD_BLOCK(k) t##k = combine(t##k, b##k);

static inline ACC row_of_lanes(__global const TYPE(X_DTYPE)* x, const int reduce) {
  EACH_LANE(FIRST_TOTAL)
  int r = 0;
  while (r + LANES <= reduce) {
    const int end = min(r + LANES * BLOCK, reduce - (LANES - 1));
    EACH_LANE(FIRST_OF_BLOCK)
    for (; r < end; r += LANES) {
#define ONE(k) b##k = combine(b##k, READ(x, r + k));
      EACH_LANE(ONE)
#undef ONE
    }
    EACH_LANE(ADD_BLOCK)
  }
#if LANES == 16
#define HALF(k, other) t##k = combine(t##k, t##other);
  HALF(0, 8) HALF(1, 9) HALF(2, 10) HALF(3, 11) HALF(4, 12) HALF(5, 13) HALF(6, 14) HALF(7, 15)
#undef HALF
#endif
  const ACC even = combine(combine(t0, t4), combine(t2, t6));
  const ACC odd = combine(combine(t1, t5), combine(t3, t7));
  ACC total = combine(even, odd);
  for (; r < reduce; ++r) total = combine(total, READ(x, r));
  return total;
}

__kernel void reduce_generic_lanes_row(__global const TYPE(X_DTYPE)* x, __global TYPE(Y_DTYPE)* y,
                                       const int outer, const int reduce) {
  const int first = ROWS * (int)get_global_id(0);
  for (int o = first; o < min(first + ROWS, outer); ++o) {
    const ACC total = row_of_lanes(x + (size_t)o * reduce, reduce);
    STORE(Y_DTYPE)(y, o, FINISH(total, reduce));
  }
}

// Work-item (block of LANES columns, outer). Columns beyond the last are read as the last one.
__kernel void reduce_generic_lanes_column(__global const TYPE(X_DTYPE)* x,
                                          __global TYPE(Y_DTYPE)* y, const int reduce,
                                          const int inner) {
  const int column = LANES * (int)get_global_id(0);
  const int o = (int)get_global_id(1);
  const int left = inner - column;
  x += (size_t)o * reduce * inner + column;
  y += (size_t)o * inner + column;
  EACH_LANE(FIRST_TOTAL)
  for (int begin = 0; begin < reduce; begin += BLOCK) {
    const int end = min(begin + BLOCK, reduce);
    EACH_LANE(FIRST_OF_BLOCK)
    if (left >= LANES) {
      for (int r = begin; r < end; ++r) {
        __global const TYPE(X_DTYPE)* row = x + (size_t)r * inner;
#define ONE(k) b##k = combine(b##k, READ(row, k));
        EACH_LANE(ONE)
#undef ONE
      }
    } else {
      for (int r = begin; r < end; ++r) {
        __global const TYPE(X_DTYPE)* row = x + (size_t)r * inner;
#define ONE(k) b##k = combine(b##k, READ(row, min(k, left - 1)));
        EACH_LANE(ONE)
#undef ONE
      }
    }
    EACH_LANE(ADD_BLOCK)
  }
#define PUT(k) \
  if (k < left) STORE(Y_DTYPE)(y, k, FINISH(t##k, reduce));
  EACH_LANE(PUT)
#undef PUT
}
#endif

#ifdef GROUP
// One work-group a row (inner == 1).
__kernel void reduce_generic_group(__global const TYPE(X_DTYPE)* x, __global TYPE(Y_DTYPE)* y,
                                   const int reduce) {
  __local ACC parts[GROUP];
  const int o = (int)get_group_id(0);
  const int t = (int)get_local_id(0);
  x += (size_t)o * reduce;
  ACC acc = FIRST;
  for (int r = t; r < reduce; r += GROUP) acc = combine(acc, READ(x, r));
  parts[t] = acc;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
    if (t < half_size) parts[t] = combine(parts[t], parts[t + half_size]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (t == 0) STORE(Y_DTYPE)(y, o, FINISH(parts[0], reduce));
}
#endif
