// Lines of [outer,reduce,inner] along reduce, TILE of them or TILE vectors of them at a time, so that
// what one waits for hides behind the others.
//
// Use        FOR_ROWS(CALL), inner being 1: the work-item's rows, `rows` from rows * its number on.
//            FOR_COLUMNS(CALL): the columns of work-item (i, o), TILE vectors of o from vector i * TILE
//            on. CALL sees `at`, the place of the first element, `result`, that of the first line's
//            result in [outer,inner], and `lines`, for a LINES_INLINE function that calls it l. There,
//            with arrays of TILE vectors, EACH_OF_TILE is a loop over k, a place in them; PASS(BODY, NEXT)
//            does BODY(at, k, left, r) for all elements, a vector at a time: vector k of those side by
//            side, `at` behind the first element, of which `left` are there, with r elements of the line
//            before it; and NEXT(k) after every 128 vectors and the last. FOLD(a, k, of): of(a[k]) where
//            a line lies in a vector, else a[k]. PUT_RESULTS(T, y, a): a[k], folded, are the results.
// Defines    TILE.
// Divisible  nothing: what is left over is done one line, or vector of lines, at a time.
// Tunables   TILE: 1 to 8. Of columns whose elements lie 16 KiB apart more than two vectors of 8 share too
//            few places of the cache, where nothing is read twice.
// Needs storage.cl, vector.cl and parts.cl before it.

// The members of lines are constants only where the function is part of the kernel.
#ifdef __clang__
#define LINES_INLINE __attribute__((always_inline)) static inline
#else
#define LINES_INLINE static inline
#endif

typedef struct {
  int steps, step;   // vectors one after the other on a line, and how far apart they lie
  int count, apart;  // vectors side by side
  int left;          // elements of a vector that are there
  int rest;          // of a last one beyond steps; 0: no such
  int along, per;    // 1: vectors lie along the line; elements of the line a step
} Lines;

LINES_INLINE Lines lines_of_rows(const int reduce, const int count) {
  const Lines l = {reduce / VECTOR, VECTOR, count, reduce, VECTOR, reduce % VECTOR, 1, VECTOR};
  return l;
}

LINES_INLINE Lines lines_of_columns(const int reduce, const int inner, const int count,
                                    const int left) {
  const Lines l = {reduce, inner, count, VECTOR, left, 0, 0, 1};
  return l;
}

#define FOR_ROWS(CALL)                                                                  \
  {                                                                                     \
    const int begin = rows * (int)get_global_id(0), end = min(begin + rows, outer);     \
    int result = begin;                                                                 \
    for (; result + TILE <= end; result += TILE) {                                      \
      const size_t at = (size_t)result * reduce;                                        \
      const Lines lines = lines_of_rows(reduce, TILE);                                  \
      CALL;                                                                             \
    }                                                                                   \
    for (; result < end; ++result) {                                                    \
      const size_t at = (size_t)result * reduce;                                        \
      const Lines lines = lines_of_rows(reduce, 1);                                     \
      CALL;                                                                             \
    }                                                                                   \
  }

#define FOR_COLUMNS(CALL)                                                               \
  {                                                                                     \
    const int o = (int)get_global_id(1), begin = TILE * VECTOR * (int)get_global_id(0); \
    size_t at = (size_t)o * reduce * inner + begin, result = (size_t)o * inner + begin; \
    if (begin + TILE * VECTOR <= inner) {                                               \
      const Lines lines = lines_of_columns(reduce, inner, TILE, VECTOR);                \
      CALL;                                                                             \
    } else {                                                                            \
      for (int i = begin; i < inner; i += VECTOR, at += VECTOR, result += VECTOR) {     \
        const Lines lines = lines_of_columns(reduce, inner, 1, min(inner - i, VECTOR)); \
        CALL;                                                                           \
      }                                                                                 \
    }                                                                                   \
  }

#define EACH_OF_TILE _Pragma("unroll") for (int k = 0; k < l.count; ++k)
#define PASS(BODY, NEXT)                                                                \
  for (int from = 0; from < l.steps; from += 128) {                                     \
    for (int s = from; s < min(from + 128, l.steps); ++s)                               \
      EACH_OF_TILE BODY((size_t)s * l.step + (size_t)k * l.apart, k, l.left, s * l.per) \
    EACH_OF_TILE { NEXT(k) }                                                            \
  }                                                                                     \
  if (l.rest > 0)                                                                       \
    EACH_OF_TILE {                                                                      \
      BODY((size_t)l.steps * l.step + (size_t)k * l.apart, k, l.rest, l.steps * l.per)  \
      NEXT(k)                                                                           \
    }
#define NOTHING(k)

#define FOLD(a, k, of) (l.along ? (FLOATV)(of(a[k])) : a[k])
#define PUT_RESULTS(T, y, a)                    \
  EACH_OF_TILE {                                \
    if (l.along)                                \
      STORE(T)(y, k, a[k].s0);                  \
    else                                        \
      STOREP(T)(y + k * VECTOR, l.left, a[k]);  \
  }

// Sums of blocks, to which NEXT adds what the block gave.
#define SUMS(name)                        \
  FLOATV name[TILE], name##_block[TILE];  \
  EACH_OF_TILE name[k] = name##_block[k] = 0;
#define ADD_BLOCK(name, k)     \
  name[k] += name##_block[k];  \
  name##_block[k] = 0;
