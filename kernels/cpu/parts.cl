// Vectors that reach beyond the end of a row.
//
// Use        LOADP(T)(p, left, pad): VECTOR elements from p on, of which left are there (at least 1);
//            the others are pad. STOREP(T)(p, left, v): those that are there. T: a float type.
// Needs storage.cl and vector.cl before it.

#define LOADP(T) NETCL_JOIN(netcl_loadp_, T)
#define STOREP(T) NETCL_JOIN(netcl_storep_, T)

#define DEFINE_PARTS(T)                                                                        \
  static inline FLOATV netcl_loadp_##T(__global const TYPE(T)* p, const int left,              \
                                       const float pad) {                                      \
    if (left >= VECTOR) return LOADV(T, p, 0);                                                 \
    float part[VECTOR];                                                                        \
    for (int j = 0; j < VECTOR; ++j) part[j] = j < left ? LOAD(T)(p, j) : pad;                 \
    return VLOAD(0, part);                                                                     \
  }                                                                                            \
  static inline void netcl_storep_##T(__global TYPE(T)* p, const int left, const FLOATV v) {   \
    if (left >= VECTOR) {                                                                      \
      STOREV(T, p, 0, v)                                                                       \
    } else {                                                                                   \
      float part[VECTOR];                                                                      \
      VSTORE(v, 0, part);                                                                      \
      for (int j = 0; j < left; ++j) STORE(T)(p, j, part[j]);                                  \
    }                                                                                          \
  }
DEFINE_PARTS(f32)
DEFINE_PARTS(f16)
DEFINE_PARTS(bf16)
#undef DEFINE_PARTS
