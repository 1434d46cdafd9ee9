// What may attend to what, for all attention kernels.
//
// Contract   mask: element (b, h, i, j) at b s4 + h s5 + i s6 + j s7 of mask_strides, head = b H + h.
//            MASKED(s, m, at): a score with element `at` of the mask m applied.
// Defines    CAUSAL, HAS_MASK, MASK_BOOL (0, 1); MASK_DTYPE. Needs storage.cl before it.
// Order      none: one number each.

#if HAS_MASK && MASK_BOOL
#define MASKED(s, m, at) (LOAD(MASK_DTYPE)(m, at) ? (s) : -INFINITY)
#elif HAS_MASK
#define MASKED(s, m, at) ((s) + LOAD(MASK_DTYPE)(m, at))
#else
#define MASKED(s, m, at) (s)
#endif

// True if query i may see key j.
#define VISIBLE(i, j) ((i) < T && (j) < S && (!CAUSAL || (j) <= (i)))

static inline size_t mask_head(const int head, const int H, const int8 strides) {
  return (size_t)(head / H) * strides.s4 + (size_t)(head % H) * strides.s5;
}
