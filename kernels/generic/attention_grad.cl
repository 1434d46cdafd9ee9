// Gradients of attention: dq from rows of queries, dk and dv from rows of keys. Each output row is
// the sum of its own work-item, so nothing collides.
//
// Contract   p = exp(score - lse), ds = p (dy . v - delta); dq = factor sum_j ds k,
//            dk = factor sum_i ds q, dv = sum_i p dy; dmask = ds. "own" rows are a (q or k) and
//            b (dy or v); the "others" are the keys or the queries. Shapes as in attention.cl;
//            lse, delta: f32 [heads,T].
// Defines    those of attention.cl, BACKWARD 1; KEYS: 1 if the own rows are keys; PART (group):
//            PART_A makes the gradient of a, PART_B that of b (keys only).
// Divisible  nothing.
// Order      the others in order, in one accumulator an element.
// Needs storage.cl, attention_mask.cl and attention.cl before it.

#define PART_A 1
#define PART_B 2

#if defined(KEYS) && !defined(GROUP)
// For CPUs: work-item (block of ROWS own rows, head). The others come packed: a and b as panels for
// the dot products and as rows for the sums (b's rows for KEYS only).
__kernel void sdpa_grad_generic_vec(
    __global const TYPE(X_DTYPE)* a, __global const TYPE(X_DTYPE)* b,
    __global const float* a_panels, __global const float* b_panels, __global const float* a_rows,
    __global const float* b_rows, __global const float* lse, __global const float* delta,
    __global const TYPE(MASK_DTYPE)* mask, __global TYPE(X_DTYPE)* da,
    __global TYPE(X_DTYPE)* db, const int T, const int S, const float factor, const int H,
    const int8 mask_strides) {
  const int first = ROWS * (int)get_global_id(0);
  const int head = (int)get_global_id(1);
  const int own = KEYS ? S : T, others = KEYS ? T : S;
  const size_t packed = (size_t)head * ((others + 15) / 16) * 16 * DP;
  const size_t base = (size_t)head * own * D;
  lse += (size_t)head * T;
  delta += (size_t)head * T;
  mask += mask_head(head, H, mask_strides);
  float rows_a[ROWS * DP], rows_b[ROWS * DP], p[ROWS * 16], ds[ROWS * 16], ones[ROWS];
  float8 sum_a[ROWS * CHUNKS];
  take_rows(rows_a, a + base, first, own, factor);
  take_rows(rows_b, b + base, first, own, 1.0f);
  for (int c = 0; c < ROWS * CHUNKS; ++c) sum_a[c] = 0;
  for (int r = 0; r < ROWS; ++r) ones[r] = 1;
#if KEYS
  float8 sum_b[ROWS * CHUNKS];
  for (int c = 0; c < ROWS * CHUNKS; ++c) sum_b[c] = 0;
  const int begin = CAUSAL ? first & ~15 : 0, end = T;
#else
  const int begin = 0, end = CAUSAL ? min(S, first + ROWS) : S;
#endif
  for (int o0 = begin; o0 < end; o0 += 16) {
    const size_t block = packed + (size_t)o0 * DP;
    dots16(p, rows_a, a_panels + block);
    dots16(ds, rows_b, b_panels + block);
    float less[16], down[16];  // lse and delta of the block's queries, for KEYS
#if KEYS
    for (int o = 0; o < 16; ++o) {
      less[o] = lse[min(o0 + o, T - 1)];
      down[o] = delta[min(o0 + o, T - 1)];
    }
#endif
    for (int r = 0; r < ROWS; ++r) {
      float* row = p + 16 * r;
      const int mine = min(first + r, own - 1);
#if !KEYS
      for (int o = 0; o < 16; ++o) {
        less[o] = lse[mine];
        down[o] = delta[mine];
      }
#endif
      for (int o = 0; o < 16; ++o) {
        const int i = KEYS ? o0 + o : mine, j = KEYS ? mine : o0 + o;
        if (VISIBLE(i, j)) {
          row[o] = MASKED(row[o], mask, (size_t)i * mask_strides.s6 + j * mask_strides.s7);
        } else {
          row[o] = -INFINITY;
        }
      }
      const float8 low = exp(vload8(0, row) - vload8(0, less));
      const float8 high = exp(vload8(1, row) - vload8(1, less));
      vstore8(low, 0, row);
      vstore8(high, 1, row);
      vstore8(low * (vload8(2 * r, ds) - vload8(0, down)), 2 * r, ds);
      vstore8(high * (vload8(2 * r + 1, ds) - vload8(1, down)), 2 * r + 1, ds);
    }
    add16(sum_a, ones, ds, a_rows + block);
#if KEYS
    add16(sum_b, ones, p, b_rows + block);
#endif
  }
  for (int r = 0; r < ROWS && first + r < own; ++r) {
    put_row(da + base + (size_t)(first + r) * D, sum_a + r * CHUNKS, factor);
#if KEYS
    put_row(db + base + (size_t)(first + r) * D, sum_b + r * CHUNKS, 1.0f);
#endif
  }
}
#endif

#if defined(KEYS) && defined(GROUP)
// For GPUs: a work-group of GROUP own rows, each work-item one; group (block, head). `out` is the
// gradient of a or of b.
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void sdpa_grad_generic_group(
    __global const TYPE(X_DTYPE)* a, __global const TYPE(X_DTYPE)* b,
    __global const TYPE(X_DTYPE)* other_a, __global const TYPE(X_DTYPE)* other_b,
    __global const float* lse, __global const float* delta,
    __global const TYPE(MASK_DTYPE)* mask, __global TYPE(X_DTYPE)* out, const int T, const int S,
    const float factor, const int H, const int8 mask_strides) {
  __local float a_tile[TILE * DP], b_tile[TILE * DP];
  const int head = (int)get_group_id(1);
  const int own = KEYS ? S : T, others = KEYS ? T : S;
  const int place = (int)get_global_id(0);
  const int mine = min(place, own - 1);
  const size_t base = ((size_t)head * own + mine) * D;
  other_a += (size_t)head * others * D;
  other_b += (size_t)head * others * D;
  lse += (size_t)head * T;
  delta += (size_t)head * T;
  mask += mask_head(head, H, mask_strides);
  float row_a[DP], sum[DP];
  take_row(row_a, a + base, factor);
#if PART == PART_A
  float row_b[DP];
  take_row(row_b, b + base, 1.0f);
#endif
  UNROLL for (int d = 0; d < DP; ++d) sum[d] = 0;
  const int block = (int)get_group_id(0) * GROUP;
  const int begin = (CAUSAL & KEYS) ? block / TILE * TILE : 0;
  const int end = (CAUSAL & !KEYS) ? min(S, block + GROUP) : others;
  for (int o0 = begin; o0 < end; o0 += TILE) {
    barrier(CLK_LOCAL_MEM_FENCE);
    take_tile(a_tile, other_a, o0, others);
    take_tile(b_tile, other_b, o0, others);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int o = 0; o < TILE; ++o) {
      const int i = KEYS ? o0 + o : mine, j = KEYS ? mine : o0 + o;
      if (!VISIBLE(i, j)) continue;
      const float score = MASKED(dot_row(row_a, a_tile + o * DP), mask,
                                 (size_t)i * mask_strides.s6 + j * mask_strides.s7);
      const float p = exp(score - lse[i]);
#if PART == PART_A
      const float ds = p * (dot_row(row_b, b_tile + o * DP) - delta[i]);
      UNROLL for (int d = 0; d < DP; ++d) sum[d] += ds * a_tile[o * DP + d];
#else
      UNROLL for (int d = 0; d < DP; ++d) sum[d] += p * b_tile[o * DP + d];
#endif
    }
  }
  if (place >= own) return;
  const float scale = PART == PART_A ? factor : 1.0f;
  UNROLL for (int d = 0; d < DP; ++d) {
    if (d < D) STORE(X_DTYPE)(out, base + d, sum[d] * scale);
  }
}
#endif

// One work-item a score.
__kernel void sdpa_grad_mask_generic_dense(
    __global const TYPE(X_DTYPE)* q, __global const TYPE(X_DTYPE)* k,
    __global const TYPE(X_DTYPE)* v, __global const TYPE(X_DTYPE)* dy, __global const float* lse,
    __global const float* delta, __global const TYPE(MASK_DTYPE)* mask,
    __global TYPE(X_DTYPE)* dmask, const int n, const int T, const int S, const float factor,
    const int H, const int8 mask_strides) {
  const int at = (int)get_global_id(0);
  if (at >= n) return;
  const int row = at / S, j = at - row * S;
  const int head = row / T, i = row - head * T;
  const size_t query = (size_t)row * D, key = ((size_t)head * S + j) * D;
  float score = 0, dp = 0;
  for (int d = 0; d < D; ++d) {
    score += LOAD(X_DTYPE)(q, query + d) * factor * LOAD(X_DTYPE)(k, key + d);
    dp += LOAD(X_DTYPE)(dy, query + d) * LOAD(X_DTYPE)(v, key + d);
  }
  score = MASKED(score, mask, mask_head(head, H, mask_strides) + (size_t)i * mask_strides.s6 + j * mask_strides.s7);
  const float ds = VISIBLE(i, j) ? exp(score - lse[row]) * (dp - delta[row]) : 0.0f;
  STORE(X_DTYPE)(dmask, at, ds);
}
