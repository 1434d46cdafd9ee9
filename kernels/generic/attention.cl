// scaled_dot_product_attention, and what its backward kernels share with it.
//
// Contract   q, dy, y: [heads,T,D]; k, v: [heads,S,D]; lse: f32 [heads,T]; the mask: attention_mask.cl.
//            The pack kernel makes f32 copies, per head ceil(count / 16) panels of 16 rows: either
//            [panel][d][16] or [panel * 16][DP], with zeros in the padding.
// Defines    D: features; DP: D rounded up to 8; X_DTYPE of q, k, v, y; GROUP (group kernels):
//            rows a work-group. Needs storage.cl and attention_mask.cl before it.
// Divisible  nothing: what lies outside counts as forbidden.
// Tunables   ROWS (vec) 4; TILE (group): keys a round.
// Order      keys in order, in blocks of 16 (vec) or 8 (group) with a running maximum.
// NaN        passes through; a row that may attend to nothing gives y = 0 and lse = 0.

#define CHUNKS (DP / 8)
#define ROWS 4
#define TILE 16

static inline float sum8(const float8 v) {
  const float4 a = v.lo + v.hi;
  return (a.x + a.z) + (a.y + a.w);
}
static inline float max8(const float8 v) {
  const float4 a = fmax(v.lo, v.hi);
  return fmax(fmax(a.x, a.z), fmax(a.y, a.w));
}

// Work-item (panel, head).
__kernel void scaled_dot_product_attention_generic_pack(__global const TYPE(X_DTYPE)* x,
                                                        __global float* packed, const int rows,
                                                        const int transposed) {
  const int first = 16 * (int)get_global_id(0);
  const int count = min(16, rows - first);
  x += (get_global_id(1) * rows + first) * D;
  packed += (get_global_id(1) * get_global_size(0) + get_global_id(0)) * 16 * DP;
  const int across = transposed ? 1 : DP, along = transposed ? 16 : 1;
  for (int r = 0; r < 16; ++r) {
    for (int d = 0; d < DP; ++d) {
      packed[r * across + d * along] =
          r < count && d < D ? LOAD(X_DTYPE)(x, (size_t)r * D + d) : 0.0f;
    }
  }
}

// ROWS rows from `first` on (the last one again beyond `count`), times `factor`.
static inline void take_rows(float* to, __global const TYPE(X_DTYPE)* x, const int first,
                             const int count, const float factor) {
  for (int r = 0; r < ROWS; ++r) {
    const size_t from = (size_t)min(first + r, count - 1) * D;
    for (int d = 0; d < D; ++d) to[r * DP + d] = LOAD(X_DTYPE)(x, from + d) * factor;
  }
}

// out[r][0..16) = rows[r] . each of a panel's 16 rows.
static inline void dots16(float* out, const float* rows, __global const float* panel) {
  float8 a0 = 0, b0 = 0, a1 = 0, b1 = 0, a2 = 0, b2 = 0, a3 = 0, b3 = 0;
  for (int d = 0; d < D; ++d) {
    const float8 low = vload8(0, panel + d * 16);
    const float8 high = vload8(1, panel + d * 16);
    a0 += rows[d] * low;
    b0 += rows[d] * high;
    a1 += rows[DP + d] * low;
    b1 += rows[DP + d] * high;
    a2 += rows[2 * DP + d] * low;
    b2 += rows[2 * DP + d] * high;
    a3 += rows[3 * DP + d] * low;
    b3 += rows[3 * DP + d] * high;
  }
  vstore8(a0, 0, out);
  vstore8(b0, 1, out);
  vstore8(a1, 2, out);
  vstore8(b1, 3, out);
  vstore8(a2, 4, out);
  vstore8(b2, 5, out);
  vstore8(a3, 6, out);
  vstore8(b3, 7, out);
}

// acc[r] = acc[r] * factor[r] + sum_j weights[r][j] rows[j].
static inline void add16(float8* acc, const float* factor, const float* weights,
                         __global const float* rows) {
  for (int c = 0; c < CHUNKS; ++c) {
    float8 a0 = acc[c] * factor[0], a1 = acc[CHUNKS + c] * factor[1];
    float8 a2 = acc[2 * CHUNKS + c] * factor[2], a3 = acc[3 * CHUNKS + c] * factor[3];
    for (int j = 0; j < 16; ++j) {
      const float8 row = vload8(c, rows + j * DP);
      a0 += weights[j] * row;
      a1 += weights[16 + j] * row;
      a2 += weights[32 + j] * row;
      a3 += weights[48 + j] * row;
    }
    acc[c] = a0;
    acc[CHUNKS + c] = a1;
    acc[2 * CHUNKS + c] = a2;
    acc[3 * CHUNKS + c] = a3;
  }
}

static inline void put_row(__global TYPE(X_DTYPE)* y, const float8* acc, const float factor) {
  for (int c = 0; c < CHUNKS; ++c) {
    float part[8];
    vstore8(acc[c] * factor, 0, part);
    for (int d = 0; d < 8 && 8 * c + d < D; ++d) STORE(X_DTYPE)(y, 8 * c + d, part[d]);
  }
}

#if !BACKWARD
// For CPUs: work-item (block of ROWS queries, head).
__kernel void scaled_dot_product_attention_generic_vec(
    __global const TYPE(X_DTYPE)* q, __global const float* k_panels, __global const float* v_rows,
    __global const TYPE(MASK_DTYPE)* mask, __global TYPE(X_DTYPE)* y, __global float* lse,
    const int T, const int S, const float factor, const int H, const int8 mask_strides) {
  const int first = ROWS * (int)get_global_id(0);
  const int head = (int)get_global_id(1);
  const size_t packed = (size_t)head * ((S + 15) / 16) * 16 * DP;
  k_panels += packed;
  v_rows += packed;
  mask += mask_head(head, H, mask_strides);
  float rows[ROWS * DP], p[ROWS * 16], top[ROWS], sum[ROWS], shrink[ROWS];
  float8 acc[ROWS * CHUNKS];
  take_rows(rows, q + (size_t)head * T * D, first, T, factor);
  for (int c = 0; c < ROWS * CHUNKS; ++c) acc[c] = 0;
  for (int r = 0; r < ROWS; ++r) {
    top[r] = -INFINITY;
    sum[r] = 0;
  }
  const int end = CAUSAL ? min(S, first + ROWS) : S;
  for (int j0 = 0; j0 < end; j0 += 16) {
    dots16(p, rows, k_panels + (size_t)j0 * DP);
    for (int r = 0; r < ROWS; ++r) {
      float* row = p + 16 * r;
      const int i = min(first + r, T - 1);
      const int allowed = (CAUSAL ? min(S, i + 1) : S) - j0;
#if HAS_MASK
      for (int j = 0; j < min(16, allowed); ++j) {
        row[j] = MASKED(row[j], mask, (size_t)i * mask_strides.s6 + (j0 + j) * mask_strides.s7);
      }
#endif
      for (int j = max(0, allowed); j < 16; ++j) row[j] = -INFINITY;
      float8 low = vload8(0, row), high = vload8(1, row);
      const float best = fmax(top[r], max8(fmax(low, high)));
      const float base = best == -INFINITY ? 0.0f : best;
      low = exp(low - base);
      high = exp(high - base);
      shrink[r] = exp(top[r] - base);
      sum[r] = sum[r] * shrink[r] + sum8(low + high);
      top[r] = best;
      vstore8(low, 0, row);
      vstore8(high, 1, row);
    }
    add16(acc, shrink, p, v_rows + (size_t)j0 * DP);
  }
  for (int r = 0; r < ROWS && first + r < T; ++r) {
    const size_t at = (size_t)head * T + first + r;
    put_row(y + at * D, acc + r * CHUNKS, sum[r] == 0 ? 0.0f : 1.0f / sum[r]);
    lse[at] = sum[r] == 0 ? 0.0f : top[r] + log(sum[r]);
  }
}
#endif

#ifdef GROUP
#if DP <= 128
#define UNROLL _Pragma("unroll")
#else
#define UNROLL
#endif

// A tile of rows of x in local memory, zeros beyond `count` rows and D features.
static inline void take_tile(__local float* to, __global const TYPE(X_DTYPE)* x, const int first,
                             const int count) {
  for (int e = (int)get_local_id(0); e < TILE * DP; e += GROUP) {
    const int r = e / DP, d = e - r * DP;
    to[e] = first + r < count && d < D ? LOAD(X_DTYPE)(x, (size_t)(first + r) * D + d) : 0.0f;
  }
}
static inline void take_row(float* to, __global const TYPE(X_DTYPE)* x, const float factor) {
  UNROLL for (int d = 0; d < DP; ++d) to[d] = d < D ? LOAD(X_DTYPE)(x, d) * factor : 0.0f;
}
static inline float dot_row(const float* a, __local const float* b) {
  float sum = 0;
  UNROLL for (int d = 0; d < DP; ++d) sum += a[d] * b[d];
  return sum;
}

#if !BACKWARD
// For GPUs: a work-group of GROUP queries, each work-item one; group (block, head).
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
scaled_dot_product_attention_generic_group(
    __global const TYPE(X_DTYPE)* q, __global const TYPE(X_DTYPE)* k,
    __global const TYPE(X_DTYPE)* v, __global const TYPE(MASK_DTYPE)* mask,
    __global TYPE(X_DTYPE)* y, __global float* lse, const int T, const int S, const float factor,
    const int H, const int8 mask_strides) {
  __local float k_tile[TILE * DP], v_tile[TILE * DP];
  const int head = (int)get_group_id(1);
  const int own = (int)get_global_id(0);
  const int i = min(own, T - 1);
  k += (size_t)head * S * D;
  v += (size_t)head * S * D;
  mask += mask_head(head, H, mask_strides);
  const int allowed = CAUSAL ? min(S, i + 1) : S;
  const int end = CAUSAL ? min(S, (int)(get_group_id(0) + 1) * GROUP) : S;
  float row[DP], acc[DP];
  take_row(row, q + ((size_t)head * T + i) * D, factor);
  UNROLL for (int d = 0; d < DP; ++d) acc[d] = 0;
  float top = -INFINITY, sum = 0;
  for (int j0 = 0; j0 < end; j0 += TILE) {
    barrier(CLK_LOCAL_MEM_FENCE);
    take_tile(k_tile, k, j0, S);
    take_tile(v_tile, v, j0, S);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int t = 0; t < TILE; t += 8) {
      float p[8];
      float best = top;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const int at = j0 + t + j;
        p[j] = -INFINITY;
        if (at < allowed) {
          p[j] = MASKED(dot_row(row, k_tile + (t + j) * DP), mask,
                        (size_t)i * mask_strides.s6 + at * mask_strides.s7);
        }
        best = fmax(best, p[j]);
      }
      const float base = best == -INFINITY ? 0.0f : best;
      const float shrink = exp(top - base);
      top = best;
      sum *= shrink;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        p[j] = exp(p[j] - base);
        sum += p[j];
      }
      UNROLL for (int d = 0; d < DP; ++d) {
        float a = acc[d] * shrink;
#pragma unroll
        for (int j = 0; j < 8; ++j) a += p[j] * v_tile[(t + j) * DP + d];
        acc[d] = a;
      }
    }
  }
  if (own >= T) return;
  const size_t at = (size_t)head * T + i;
  const float scale = sum == 0 ? 0.0f : 1.0f / sum;
  UNROLL for (int d = 0; d < DP; ++d) {
    if (d < D) STORE(X_DTYPE)(y, at * D + d, acc[d] * scale);
  }
  lse[at] = sum == 0 ? 0.0f : top + log(sum);
}
#endif
#endif
