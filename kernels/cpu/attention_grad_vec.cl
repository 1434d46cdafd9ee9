// Gradients of attention for CPUs: a work-item has WIDTH own rows, one a lane: dq of queries, or dk and
// dv of keys. Each output row is the sum of its own work-item, so nothing collides.
//
// Contract   p = exp(score - lse), ds = p (dy . v - delta); dq = factor sum_j ds k,
//            dk = factor sum_i ds q, dv = sum_i p dy. "own" rows are a (q or k) and b (dy or v); the
//            others are the keys or the queries. Shapes as in attention_vec.cl; lse, delta: f32
//            [heads,T].
// Defines    those of attention_lanes.cl and attention_mask.cl; KEYS: 1 if the own rows are keys.
// Divisible  nothing.
// Tunables   those of panel.cl.
// Order      the others in order, in one accumulator an element.
// Needs storage.cl, vector.cl, panel.cl, attention_mask.cl and attention_lanes.cl before it.

// Work-item (WIDTH own rows, head).
VECTOR_KERNEL void sdpa_grad_cpu_vec(
    __global const TYPE(X_DTYPE)* a, __global const TYPE(X_DTYPE)* b,
    __global const TYPE(X_DTYPE)* other_a, __global const TYPE(X_DTYPE)* other_b,
    __global const float* lse, __global const float* delta,
    __global const TYPE(MASK_DTYPE)* mask, __global TYPE(X_DTYPE)* da,
    __global TYPE(X_DTYPE)* db, const int T, const int S, const float factor, const int H,
    const int8 mask_strides) {
  const int head = (int)get_global_id(1), first = WIDTH * (int)get_global_id(0);
  const int rows = KEYS ? S : T, others = KEYS ? T : S, own = min(WIDTH, rows - first);
  const size_t base = (size_t)head * rows * D;
  other_a += (size_t)head * others * D;
  other_b += (size_t)head * others * D;
  lse += (size_t)head * T;
  delta += (size_t)head * T;
  mask += mask_head(head, H, mask_strides);
  float lanes_a[D * WIDTH], lanes_b[D * WIDTH], p[BLOCK * WIDTH], ds[BLOCK * WIDTH];
  float sum_a[PADDED_D * WIDTH], factors[WIDTH], ones[WIDTH];
  take_lanes(lanes_a, a + base, first, rows, factor);
  take_lanes(lanes_b, b + base, first, rows, 1.0f);
  for (int c = 0; c < PADDED_D * WIDTH; ++c) sum_a[c] = 0;
  for (int lane = 0; lane < WIDTH; ++lane) {
    factors[lane] = factor;
    ones[lane] = 1;
  }
#if KEYS
  float sum_b[PADDED_D * WIDTH];
  for (int c = 0; c < PADDED_D * WIDTH; ++c) sum_b[c] = 0;
#else
  float own_lse[WIDTH], own_delta[WIDTH];
  for (int lane = 0; lane < WIDTH; ++lane) {
    own_lse[lane] = lse[min(first + lane, T - 1)];
    own_delta[lane] = delta[min(first + lane, T - 1)];
  }
#endif
  const int begin = (CAUSAL & KEYS) ? min(first, others) : 0;
  const int end = (CAUSAL & !KEYS) ? min(S, first + own) : others;
  for (int o0 = begin; o0 < end; o0 += BLOCK) {
    const int count = min(BLOCK, end - o0);
    products(p, other_a + (size_t)o0 * D, count, lanes_a);
    products(ds, other_b + (size_t)o0 * D, count, lanes_b);
#if HAS_MASK
    for (int o = 0; o < count; ++o) {
      for (int lane = 0; lane < own; ++lane) {
        const size_t i = KEYS ? o0 + o : first + lane, j = KEYS ? first + lane : o0 + o;
        p[o * WIDTH + lane] =
            MASKED(p[o * WIDTH + lane], mask, i * mask_strides.s6 + j * mask_strides.s7);
      }
    }
#endif
    for (int o = 0; o < count; ++o) {
      for (int w = 0; w < VECTORS; ++w) {
        FLOATV score = VLOAD(w, p + o * WIDTH);
#if KEYS
        const FLOATV less = lse[o0 + o], down = delta[o0 + o];
        if (CAUSAL) score = select((FLOATV)(-INFINITY), score, LANES(w) + first <= o0 + o);
#else
        const FLOATV less = VLOAD(w, own_lse), down = VLOAD(w, own_delta);
        if (CAUSAL) score = select((FLOATV)(-INFINITY), score, LANES(w) + first >= o0 + o);
#endif
        const FLOATV weight = exp(score - less);
        VSTORE(weight, w, p + o * WIDTH);
        VSTORE(weight * (VLOAD(w, ds + o * WIDTH) - down), w, ds + o * WIDTH);
      }
    }
    add_products(sum_a, ones, other_a + (size_t)o0 * D, count, ds);
#if KEYS
    add_products(sum_b, ones, other_b + (size_t)o0 * D, count, p);
#endif
  }
  put_lanes(da + base + (size_t)first * D, sum_a, own, factors);
#if KEYS
  put_lanes(db + base + (size_t)first * D, sum_b, own, ones);
#endif
}
