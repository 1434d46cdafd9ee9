// cross_entropy, its gradient and both at once for CPUs: the classes of a row in vectors.
//
// Contract   that of cross_entropy.cl.
// Defines    those of cross_entropy.cl, VECTOR (vector.cl).
// Divisible  nothing.
// Tunables   VECTOR. Argument rows: rows a work-item.
// Order      lanes of vectors, then sum_of.
// Needs storage.cl, vector.cl, parts.cl and cross_entropy.cl before it.

static inline Row vector_row(__global const TYPE(X_DTYPE)* logits,
                             __global const float* class_weights, const int C, const int smooth) {
  FLOATV most = -INFINITY, sum = 0, shifts = 0, weights = 0;
  for (int c = 0; c < C; c += VECTOR)
    most = fmax(most, LOADP(X_DTYPE)(logits + c, C - c, -INFINITY));
  float lanes[VECTOR];
  VSTORE(most, 0, lanes);
  Row row = (Row)(-INFINITY, 0.0f, 0.0f, 0.0f);
  for (int j = 0; j < VECTOR; ++j) row.x = fmax(row.x, lanes[j]);
  for (int c = 0; c < C; c += VECTOR)
    sum += exp(LOADP(X_DTYPE)(logits + c, C - c, -INFINITY) - row.x);
  row.y = sum_of(sum);
  if (!smooth) return row;
  for (int c = 0; c < C; c += VECTOR) {
#if HAS_WEIGHT
    const FLOATV w = LOADP(f32)(class_weights + c, C - c, 0.0f);
    weights += w;
    shifts += w * (LOADP(X_DTYPE)(logits + c, C - c, row.x) - row.x);
#else
    shifts += LOADP(X_DTYPE)(logits + c, C - c, row.x) - row.x;
#endif
  }
  row.z = sum_of(shifts);
  row.w = HAS_WEIGHT ? sum_of(weights) : (float)C;
  return row;
}

#define ROWS_OF_ITEM                                   \
  const int begin = rows * (int)get_global_id(0);      \
  for (int i = begin; i < min(begin + rows, N); ++i)

// A row that does not count, or whose label is no class.
static inline int without_class(const int label, const int ignore_index, const int C) {
  return label == ignore_index || outside(label, C);
}

VECTOR_KERNEL void cross_entropy_cpu_vec(__global const TYPE(X_DTYPE)* logits,
                                         __global const int* labels,
                                         __global const float* class_weights, __global float* loss,
                                         __global float* weight, const int N, const int C,
                                         const int ignore_index, const float smoothing,
                                         const int rows) {
  ROWS_OF_ITEM {
    const int label = labels[i];
    if (without_class(label, ignore_index, C)) {
      weight[i] = label != ignore_index ? 1.0f : 0.0f;
      loss[i] = label != ignore_index ? NAN : 0.0f;
      continue;
    }
    __global const TYPE(X_DTYPE)* row_logits = logits + (size_t)i * C;
    const float w = class_weight(class_weights, label);
    const Row row = vector_row(row_logits, class_weights, C, smoothing > 0.0f);
    weight[i] = w;
    loss[i] = row_loss(row, LOAD(X_DTYPE)(row_logits, label), w, C, smoothing);
  }
}

#ifdef Y_DTYPE
static inline void no_slopes(__global TYPE(Y_DTYPE)* to, const int counted, const int C) {
  for (int c = 0; c < C; ++c) STORE(Y_DTYPE)(to, c, counted ? NAN : 0.0f);
}

static inline void vector_slopes(__global const TYPE(X_DTYPE)* from,
                                 __global const float* class_weights, __global TYPE(Y_DTYPE)* to,
                                 const Row row, const int label, const float w, const float scale,
                                 const int C, const float smoothing) {
  for (int c = 0; c < C; c += VECTOR) {
    const int left = C - c;
    const FLOATV p = exp(LOADP(X_DTYPE)(from + c, left, -INFINITY) - row.x) / row.y;
    float lanes[VECTOR];
    VSTORE(p, 0, lanes);
    if (label >= c && label < c + VECTOR) lanes[label - c] -= 1.0f;
    FLOATV d = w * VLOAD(0, lanes);
    if (smoothing > 0.0f) {
#if HAS_WEIGHT
      const FLOATV w_class = LOADP(f32)(class_weights + c, left, 0.0f);
#else
      const FLOATV w_class = 1.0f;
#endif
      d = (1.0f - smoothing) * d + smoothing / (float)C * (row.w * p - w_class);
    }
    STOREP(Y_DTYPE)(to + c, left, d * scale);
  }
}

VECTOR_KERNEL void cross_entropy_grad_cpu_vec(
    __global const TYPE(X_DTYPE)* logits, __global const int* labels, __global const float* dloss,
    __global const float* class_weights, __global TYPE(Y_DTYPE)* dlogits, const int N, const int C,
    const int ignore_index, const float smoothing, const int rows) {
  ROWS_OF_ITEM {
    const int label = labels[i];
    __global const TYPE(X_DTYPE)* from = logits + (size_t)i * C;
    __global TYPE(Y_DTYPE)* to = dlogits + (size_t)i * C;
    if (without_class(label, ignore_index, C)) {
      no_slopes(to, label != ignore_index, C);
      continue;
    }
    const Row row = vector_row(from, class_weights, C, smoothing > 0.0f);
    vector_slopes(from, class_weights, to, row, label, class_weight(class_weights, label),
                  dloss[i], C, smoothing);
  }
}

VECTOR_KERNEL void cross_entropy_with_grad_cpu_vec(
    __global const TYPE(X_DTYPE)* logits, __global const int* labels, __global const float* dloss,
    __global const float* class_weights, __global float* loss, __global float* weight,
    __global TYPE(Y_DTYPE)* dlogits, const int N, const int C, const int ignore_index,
    const float smoothing, const int rows) {
  ROWS_OF_ITEM {
    const int label = labels[i];
    __global const TYPE(X_DTYPE)* from = logits + (size_t)i * C;
    __global TYPE(Y_DTYPE)* to = dlogits + (size_t)i * C;
    if (without_class(label, ignore_index, C)) {
      weight[i] = label != ignore_index ? 1.0f : 0.0f;
      loss[i] = label != ignore_index ? NAN : 0.0f;
      no_slopes(to, label != ignore_index, C);
      continue;
    }
    const Row row = vector_row(from, class_weights, C, smoothing > 0.0f);
    const float w = class_weight(class_weights, label);
    weight[i] = w;
    loss[i] = row_loss(row, LOAD(X_DTYPE)(from, label), w, C, smoothing);
    vector_slopes(from, class_weights, to, row, label, w, dloss[i], C, smoothing);
  }
}
#endif
