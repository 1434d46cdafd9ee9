// scaled_dot_product_attention for CPUs: a work-item has WIDTH queries, one a lane.
//
// Contract   q, y: [heads,T,D]; k, v: [heads,S,D]; lse: f32 [heads,T]; the mask: attention_mask.cl.
// Defines    those of attention_lanes.cl and attention_mask.cl.
// Divisible  nothing.
// Tunables   those of panel.cl.
// Order      keys in order, in blocks with a running maximum.
// NaN        passes through; a row that may attend to nothing gives y = 0 and lse = 0.
// Needs storage.cl, vector.cl, panel.cl, attention_mask.cl and attention_lanes.cl before it.

// scores[j][WIDTH] become probabilities, j < count, not yet divided by their sum; shrink[WIDTH]: what
// is to be multiplied with what was summed up before.
static inline void running_softmax(float* scores, const int count, float* top, float* sum,
                                   float* shrink) {
  for (int v = 0; v < VECTORS; ++v) {
    const FLOATV old = VLOAD(v, top);
    FLOATV most = old, total = 0;
    for (int j = 0; j < count; ++j) {
      const FLOATV score = VLOAD(v, scores + j * WIDTH);
      most = select(most, score, score > most);
    }
    const FLOATV base = select(most, (FLOATV)(0.0f), most == -INFINITY);
    for (int j = 0; j < count; ++j) {
      const FLOATV p = exp(VLOAD(v, scores + j * WIDTH) - base);
      VSTORE(p, v, scores + j * WIDTH);
      total += p;
    }
    const FLOATV less = exp(old - base);
    VSTORE(less, v, shrink);
    VSTORE(VLOAD(v, sum) * less + total, v, sum);
    VSTORE(most, v, top);
  }
}

// Work-item (WIDTH queries, head).
VECTOR_KERNEL void scaled_dot_product_attention_cpu_vec(
    __global const TYPE(X_DTYPE)* q, __global const TYPE(X_DTYPE)* k,
    __global const TYPE(X_DTYPE)* v, __global const TYPE(MASK_DTYPE)* mask,
    __global TYPE(X_DTYPE)* y, __global float* lse, const int T, const int S, const float factor,
    const int H, const int8 mask_strides) {
  const int head = (int)get_global_id(1), first = WIDTH * (int)get_global_id(0);
  const int own = min(WIDTH, T - first);
  k += (size_t)head * S * D;
  v += (size_t)head * S * D;
  mask += mask_head(head, H, mask_strides);
  float lanes[D * WIDTH], p[BLOCK * WIDTH], sums[PADDED_D * WIDTH];
  float top[WIDTH], sum[WIDTH], shrink[WIDTH];
  take_lanes(lanes, q + (size_t)head * T * D, first, T, factor);
  for (int c = 0; c < PADDED_D * WIDTH; ++c) sums[c] = 0;
  for (int lane = 0; lane < WIDTH; ++lane) {
    top[lane] = -INFINITY;
    sum[lane] = 0;
  }
  const int end = CAUSAL ? min(S, first + own) : S;
  for (int j0 = 0; j0 < end; j0 += BLOCK) {
    const int count = min(BLOCK, end - j0);
    products(p, k + (size_t)j0 * D, count, lanes);
    for (int j = 0; CAUSAL && j < count; ++j) {
      for (int w = 0; w < VECTORS; ++w) {
        const FLOATV score = VLOAD(w, p + j * WIDTH);
        VSTORE(select((FLOATV)(-INFINITY), score, LANES(w) + first >= j0 + j), w, p + j * WIDTH);
      }
    }
#if HAS_MASK
    for (int j = 0; j < count; ++j) {
      for (int lane = 0; lane < own; ++lane) {
        const size_t at =
            (size_t)(first + lane) * mask_strides.s6 + (size_t)(j0 + j) * mask_strides.s7;
        p[j * WIDTH + lane] = MASKED(p[j * WIDTH + lane], mask, at);
      }
    }
#endif
    running_softmax(p, count, top, sum, shrink);
    add_products(sums, shrink, v + (size_t)j0 * D, count, p);
  }
  const size_t at = (size_t)head * T + first;
  for (int lane = 0; lane < own; ++lane) {
    shrink[lane] = sum[lane] == 0 ? 0.0f : 1.0f / sum[lane];
    lse[at + lane] = sum[lane] == 0 ? 0.0f : top[lane] + log(sum[lane]);
  }
  put_lanes(y + at * D, sums, own, shrink);
}
