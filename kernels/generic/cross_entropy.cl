// cross_entropy and nll with class weights, their gradients, and cross_entropy with its gradient.
//
// Contract   logits X_DTYPE[N,C], labels i32[N], class weights f32[C] (HAS_WEIGHT; else 1); loss,
//            weight f32[N]; dloss f32[N], dlogits Y_DTYPE[N,C]. With p = softmax(logits), e the
//            label smoothing and w the class weights, W their sum:
//            loss = -(1 - e) w[label] log p[label] - e / C sum(w log p), weight = w[label],
//            dlogits[k] = dloss ((1 - e) w[label] (p[k] - [k == label]) + e / C (W p[k] - w[k])).
//            nll: logits are log p themselves, e is 0. A label equal to ignore_index: loss 0,
//            weight 0, gradient 0. Any other label outside [0, C): NaN in loss and gradient and
//            weight 1, so that a broken data set is seen.
// Defines    X_DTYPE, and Y_DTYPE for gradients; HAS_WEIGHT (0/1); GROUP (group kernels). Needs
//            storage.cl and, for groups, group_reduce.cl before it.
// Divisible  nothing.
// Order      row: in order. group: strided partial sums, then a tree.

static inline int outside(const int label, const int C) { return label < 0 || label >= C; }

static inline float class_weight(__global const float* w, const int c) {
#if HAS_WEIGHT
  return w[c];
#else
  return 1.0f;
#endif
}

// What a row's classes give together: maximum x, sum y of exp(logit - max), sum z of w (logit - max),
// sum w of w. A vector, no structure: simulators lack what a compiler makes of returned structures.
typedef float4 Row;

static inline float row_loss(const Row row, const float x, const float w, const int C,
                             const float smoothing) {
  const float log_sum = log(row.y);
  float loss = w * (log_sum - (x - row.x));
  if (smoothing > 0.0f) {
    const float even = (row.w * log_sum - row.z) / (float)C;
    loss = (1.0f - smoothing) * loss + smoothing * even;
  }
  return loss;
}

// Of class k, whose logit is x, without dloss.
static inline float row_slope(const Row row, const float x, const int hit, const float w_label,
                              const float w_class, const int C, const float smoothing) {
  const float p = exp(x - row.x) / row.y;
  const float d = w_label * (hit ? p - 1.0f : p);
  if (!(smoothing > 0.0f)) return d;
  return (1.0f - smoothing) * d + smoothing / (float)C * (row.w * p - w_class);
}

static inline Row read_row(__global const TYPE(X_DTYPE)* logits,
                           __global const float* class_weights, const int C, const int smooth) {
  Row row = (Row)(-INFINITY, 0.0f, 0.0f, 0.0f);
  for (int c = 0; c < C; ++c) row.x = fmax(row.x, LOAD(X_DTYPE)(logits, c));
  for (int c = 0; c < C; ++c) row.y += exp(LOAD(X_DTYPE)(logits, c) - row.x);
  for (int c = 0; smooth && c < C; ++c) {
    const float w = class_weight(class_weights, c);
    row.z += w * (LOAD(X_DTYPE)(logits, c) - row.x);
    row.w += w;
  }
  return row;
}

__kernel void cross_entropy_generic_row(__global const TYPE(X_DTYPE)* logits,
                                        __global const int* labels,
                                        __global const float* class_weights, __global float* loss,
                                        __global float* weight, const int N, const int C,
                                        const int ignore_index, const float smoothing) {
  const int i = (int)get_global_id(0);
  if (i >= N) return;
  const int label = labels[i];
  const int counted = label != ignore_index;
  if (!counted || outside(label, C)) {
    weight[i] = counted ? 1.0f : 0.0f;
    loss[i] = counted ? NAN : 0.0f;
    return;
  }
  logits += (size_t)i * C;
  const float w = class_weight(class_weights, label);
  const Row row = read_row(logits, class_weights, C, smoothing > 0.0f);
  weight[i] = w;
  loss[i] = row_loss(row, LOAD(X_DTYPE)(logits, label), w, C, smoothing);
}

#ifdef Y_DTYPE
static inline void write_slopes(__global const TYPE(X_DTYPE)* logits,
                                __global const float* class_weights,
                                __global TYPE(Y_DTYPE)* dlogits, const Row row, const int label,
                                const float w, const float scale, const int C,
                                const float smoothing) {
  for (int c = 0; c < C; ++c) {
    const float x = LOAD(X_DTYPE)(logits, c);
    const float d = row_slope(row, x, c == label, w, class_weight(class_weights, c), C, smoothing);
    STORE(Y_DTYPE)(dlogits, c, d * scale);
  }
}

__kernel void cross_entropy_grad_generic_row(
    __global const TYPE(X_DTYPE)* logits, __global const int* labels, __global const float* dloss,
    __global const float* class_weights, __global TYPE(Y_DTYPE)* dlogits, const int N, const int C,
    const int ignore_index, const float smoothing) {
  const int i = (int)get_global_id(0);
  if (i >= N) return;
  const int label = labels[i];
  logits += (size_t)i * C;
  dlogits += (size_t)i * C;
  const int counted = label != ignore_index;
  if (!counted || outside(label, C)) {
    for (int c = 0; c < C; ++c) STORE(Y_DTYPE)(dlogits, c, counted ? NAN : 0.0f);
    return;
  }
  const Row row = read_row(logits, class_weights, C, smoothing > 0.0f);
  const float w = class_weight(class_weights, label);
  write_slopes(logits, class_weights, dlogits, row, label, w, dloss[i], C, smoothing);
}

__kernel void cross_entropy_with_grad_generic_row(
    __global const TYPE(X_DTYPE)* logits, __global const int* labels, __global const float* dloss,
    __global const float* class_weights, __global float* loss, __global float* weight,
    __global TYPE(Y_DTYPE)* dlogits, const int N, const int C, const int ignore_index,
    const float smoothing) {
  const int i = (int)get_global_id(0);
  if (i >= N) return;
  const int label = labels[i];
  logits += (size_t)i * C;
  dlogits += (size_t)i * C;
  const int counted = label != ignore_index;
  if (!counted || outside(label, C)) {
    weight[i] = counted ? 1.0f : 0.0f;
    loss[i] = counted ? NAN : 0.0f;
    for (int c = 0; c < C; ++c) STORE(Y_DTYPE)(dlogits, c, counted ? NAN : 0.0f);
    return;
  }
  const Row row = read_row(logits, class_weights, C, smoothing > 0.0f);
  const float w = class_weight(class_weights, label);
  weight[i] = w;
  loss[i] = row_loss(row, LOAD(X_DTYPE)(logits, label), w, C, smoothing);
  write_slopes(logits, class_weights, dlogits, row, label, w, dloss[i], C, smoothing);
}

// One work-item an element.
__kernel void nll_grad_generic_flat(__global const int* labels, __global const float* dloss,
                                    __global const float* class_weights,
                                    __global TYPE(Y_DTYPE)* dlogits, const int n, const int C,
                                    const int ignore_index) {
  const int i = (int)get_global_id(0);
  if (i >= n) return;
  const int row = i / C, c = i - row * C;
  const int label = labels[row];
  float d = 0;
  if (label != ignore_index && outside(label, C)) {
    d = NAN;
  } else if (label != ignore_index && label == c) {
    d = -class_weight(class_weights, c) * dloss[row];
  }
  STORE(Y_DTYPE)(dlogits, i, d);
}
#endif

__kernel void nll_generic_row(__global const TYPE(X_DTYPE)* logits, __global const int* labels,
                              __global const float* class_weights, __global float* loss,
                              __global float* weight, const int N, const int C,
                              const int ignore_index) {
  const int i = (int)get_global_id(0);
  if (i >= N) return;
  const int label = labels[i];
  const int counted = label != ignore_index;
  float w = counted ? 1.0f : 0.0f, value = counted ? NAN : 0.0f;
  if (counted && !outside(label, C)) {
    w = class_weight(class_weights, label);
    value = -w * LOAD(X_DTYPE)(logits, (size_t)i * C + label);
  }
  weight[i] = w;
  loss[i] = value;
}

#ifdef GROUP
// The row, in every work-item.
static inline Row group_row(__global const TYPE(X_DTYPE)* logits,
                            __global const float* class_weights, const int C, const int smooth,
                            __local float* parts) {
  const int t = (int)get_local_id(0);
  Row row = (Row)(-INFINITY, 0.0f, 0.0f, 0.0f);
  float acc = -INFINITY;
  for (int c = t; c < C; c += GROUP) acc = fmax(acc, LOAD(X_DTYPE)(logits, c));
  row.x = group_max(acc, parts);
  acc = 0;
  for (int c = t; c < C; c += GROUP) acc += exp(LOAD(X_DTYPE)(logits, c) - row.x);
  row.y = group_sum(acc, parts);
  if (smooth) {  // the same for all work-items
    float total = 0;
    acc = 0;
    for (int c = t; c < C; c += GROUP) {
      const float w = class_weight(class_weights, c);
      acc += w * (LOAD(X_DTYPE)(logits, c) - row.x);
      total += w;
    }
    row.z = group_sum(acc, parts);
    row.w = group_sum(total, parts);
  }
  return row;
}

// One work-group a row.
__kernel void cross_entropy_generic_group(__global const TYPE(X_DTYPE)* logits,
                                          __global const int* labels,
                                          __global const float* class_weights, __global float* loss,
                                          __global float* weight, const int C,
                                          const int ignore_index, const float smoothing) {
  __local float parts[GROUP];
  const int i = (int)get_group_id(0);
  logits += (size_t)i * C;
  const Row row = group_row(logits, class_weights, C, smoothing > 0.0f, parts);
  if (get_local_id(0) != 0) return;
  const int label = labels[i];
  const int counted = label != ignore_index;
  if (!counted || outside(label, C)) {
    weight[i] = counted ? 1.0f : 0.0f;
    loss[i] = counted ? NAN : 0.0f;
  } else {
    const float w = class_weight(class_weights, label);
    weight[i] = w;
    loss[i] = row_loss(row, LOAD(X_DTYPE)(logits, label), w, C, smoothing);
  }
}

#ifdef Y_DTYPE
static inline void write_group_slopes(__global const TYPE(X_DTYPE)* logits,
                                      __global const float* class_weights,
                                      __global TYPE(Y_DTYPE)* dlogits, const Row row,
                                      const int label, const int counted, const int wrong,
                                      const float w, const float scale, const int C,
                                      const float smoothing) {
  for (int c = (int)get_local_id(0); c < C; c += GROUP) {
    const float x = LOAD(X_DTYPE)(logits, c);
    const float d =
        row_slope(row, x, c == label, w, class_weight(class_weights, c), C, smoothing) * scale;
    STORE(Y_DTYPE)(dlogits, c, wrong ? NAN : counted ? d : 0.0f);
  }
}

__kernel void cross_entropy_grad_generic_group(__global const TYPE(X_DTYPE)* logits,
                                               __global const int* labels,
                                               __global const float* dloss,
                                               __global const float* class_weights,
                                               __global TYPE(Y_DTYPE)* dlogits, const int C,
                                               const int ignore_index, const float smoothing) {
  __local float parts[GROUP];
  const int i = (int)get_group_id(0);
  logits += (size_t)i * C;
  dlogits += (size_t)i * C;
  const Row row = group_row(logits, class_weights, C, smoothing > 0.0f, parts);
  const int label = labels[i];
  const int counted = label != ignore_index;
  const int wrong = counted && outside(label, C);
  const float w = counted && !wrong ? class_weight(class_weights, label) : 0.0f;
  write_group_slopes(logits, class_weights, dlogits, row, label, counted, wrong, w, dloss[i], C,
                     smoothing);
}

__kernel void cross_entropy_with_grad_generic_group(
    __global const TYPE(X_DTYPE)* logits, __global const int* labels, __global const float* dloss,
    __global const float* class_weights, __global float* loss, __global float* weight,
    __global TYPE(Y_DTYPE)* dlogits, const int C, const int ignore_index, const float smoothing) {
  __local float parts[GROUP];
  const int i = (int)get_group_id(0);
  logits += (size_t)i * C;
  dlogits += (size_t)i * C;
  const Row row = group_row(logits, class_weights, C, smoothing > 0.0f, parts);
  const int label = labels[i];
  const int counted = label != ignore_index;
  const int wrong = counted && outside(label, C);
  const float w = counted && !wrong ? class_weight(class_weights, label) : 0.0f;
  if (get_local_id(0) == 0) {
    weight[i] = wrong ? 1.0f : w;
    loss[i] = wrong     ? NAN
              : counted ? row_loss(row, LOAD(X_DTYPE)(logits, label), w, C, smoothing)
                        : 0.0f;
  }
  write_group_slopes(logits, class_weights, dlogits, row, label, counted, wrong, w, dloss[i], C,
                     smoothing);
}
#endif
#endif
