// cross_entropy and its gradient, fused with log-softmax.
//
// Contract   logits X_DTYPE[N,C], labels i32[N]; loss, weight f32[N]; dloss f32[N], dlogits
//            Y_DTYPE[N,C].
//            loss = log sum exp(logits - max) - (logits[label] - max), weight 1. A label equal to
//            ignore_index: loss 0, weight 0, gradient 0. Any other label outside [0, C): NaN in
//            loss and gradient, so that a broken data set is seen.
// Defines    X_DTYPE, and Y_DTYPE for gradients; GROUP (group kernels). Needs storage.cl before it.
// Divisible  nothing.
// Order      row: in order. group: strided partial sums, then a tree.

static inline int outside(const int label, const int C) { return label < 0 || label >= C; }

__kernel void cross_entropy_generic_row(__global const TYPE(X_DTYPE)* logits,
                                        __global const int* labels, __global float* loss,
                                        __global float* weight, const int N, const int C,
                                        const int ignore_index) {
  const int i = (int)get_global_id(0);
  if (i >= N) return;
  const int label = labels[i];
  const int counted = label != ignore_index;
  weight[i] = counted ? 1.0f : 0.0f;
  if (!counted || outside(label, C)) {
    loss[i] = counted ? NAN : 0.0f;
    return;
  }
  logits += (size_t)i * C;
  float top = -INFINITY;
  for (int c = 0; c < C; ++c) top = fmax(top, LOAD(X_DTYPE)(logits, c));
  float sum = 0;
  for (int c = 0; c < C; ++c) sum += exp(LOAD(X_DTYPE)(logits, c) - top);
  loss[i] = log(sum) - (LOAD(X_DTYPE)(logits, label) - top);
}

__kernel void cross_entropy_grad_generic_row(__global const TYPE(X_DTYPE)* logits,
                                             __global const int* labels,
                                             __global const float* dloss,
                                             __global TYPE(Y_DTYPE)* dlogits, const int N,
                                             const int C, const int ignore_index) {
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
  float top = -INFINITY;
  for (int c = 0; c < C; ++c) top = fmax(top, LOAD(X_DTYPE)(logits, c));
  float sum = 0;
  for (int c = 0; c < C; ++c) sum += exp(LOAD(X_DTYPE)(logits, c) - top);
  const float scale = dloss[i];
  for (int c = 0; c < C; ++c) {
    const float p = exp(LOAD(X_DTYPE)(logits, c) - top) / sum;
    STORE(Y_DTYPE)(dlogits, c, (c == label ? p - 1.0f : p) * scale);
  }
}

#ifdef GROUP
// The row's maximum and sum of exponentials, in every work-item.
static inline float2 group_top_and_sum(__global const TYPE(X_DTYPE)* logits, const int C,
                                       __local float* parts) {
  const int t = (int)get_local_id(0);
  float acc = -INFINITY;
  for (int c = t; c < C; c += GROUP) acc = fmax(acc, LOAD(X_DTYPE)(logits, c));
  parts[t] = acc;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
    if (t < half_size) parts[t] = fmax(parts[t], parts[t + half_size]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const float top = parts[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  acc = 0;
  for (int c = t; c < C; c += GROUP) acc += exp(LOAD(X_DTYPE)(logits, c) - top);
  parts[t] = acc;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
    if (t < half_size) parts[t] += parts[t + half_size];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  return (float2)(top, parts[0]);
}

// One work-group a row.
__kernel void cross_entropy_generic_group(__global const TYPE(X_DTYPE)* logits,
                                          __global const int* labels, __global float* loss,
                                          __global float* weight, const int C,
                                          const int ignore_index) {
  __local float parts[GROUP];
  const int i = (int)get_group_id(0);
  logits += (size_t)i * C;
  const float2 row = group_top_and_sum(logits, C, parts);
  if (get_local_id(0) != 0) return;
  const int label = labels[i];
  const int counted = label != ignore_index;
  weight[i] = counted ? 1.0f : 0.0f;
  if (!counted || outside(label, C)) {
    loss[i] = counted ? NAN : 0.0f;
  } else {
    loss[i] = log(row.y) - (LOAD(X_DTYPE)(logits, label) - row.x);
  }
}

__kernel void cross_entropy_grad_generic_group(__global const TYPE(X_DTYPE)* logits,
                                               __global const int* labels,
                                               __global const float* dloss,
                                               __global TYPE(Y_DTYPE)* dlogits, const int C,
                                               const int ignore_index) {
  __local float parts[GROUP];
  const int i = (int)get_group_id(0);
  logits += (size_t)i * C;
  dlogits += (size_t)i * C;
  const float2 row = group_top_and_sum(logits, C, parts);
  const int label = labels[i];
  const int counted = label != ignore_index;
  const int wrong = counted && outside(label, C);
  const float scale = dloss[i];
  for (int c = (int)get_local_id(0); c < C; c += GROUP) {
    const float p = exp(LOAD(X_DTYPE)(logits, c) - row.x) / row.y;
    const float d = (c == label ? p - 1.0f : p) * scale;
    STORE(Y_DTYPE)(dlogits, c, wrong ? NAN : counted ? d : 0.0f);
  }
}
#endif
