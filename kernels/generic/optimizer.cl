// Optimiser steps but lamb: one fused update of a flat arena of parameters.
//
// Contract   param and states f32[n], grad at least grad_offset + n, hyper f32[groups,16], blocks
//            i32[ceil(n / 128)] (optimizer_common.cl), divisor f32[1]. Outputs may be the same memory
//            as the inputs.
// Defines    RULE: SGD ADAM RMSPROP ADAGRAD LION; STATES: 0 to 3; DECOUPLED: 1 for adamw, else 0;
//            AMSGRAD MOMENTUM CENTERED: 0 or 1, what the states are.
// Divisible  nothing. One work-group of 128 a block, so that its group is uniform.
// Order      of operations as in PyTorch.

#define SGD 1
#define ADAM 2
#define RMSPROP 3
#define ADAGRAD 4
#define LION 5

#if STATES > 2
#define STATE_ARGS(qualifier, suffix) \
  qualifier float *s0##suffix, qualifier float *s1##suffix, qualifier float *s2##suffix,
#elif STATES > 1
#define STATE_ARGS(qualifier, suffix) qualifier float *s0##suffix, qualifier float *s1##suffix,
#elif STATES > 0
#define STATE_ARGS(qualifier, suffix) qualifier float *s0##suffix,
#else
#define STATE_ARGS(qualifier, suffix)
#endif

#if RULE == SGD
// states: momentum. hyper: [3] momentum, [4] 1 - dampening, [5] nesterov, [6] first step.
static inline float updated(const float p, float g, float* s, __global const float* hyper) {
  g += hyper[1] * p;
#if STATES
  s[0] = hyper[6] != 0.0f ? g : hyper[3] * s[0] + hyper[4] * g;
  g = hyper[5] != 0.0f ? g + hyper[3] * s[0] : s[0];
#endif
  return p - hyper[0] * g;
}
#elif RULE == ADAM
// states: m, v, greatest v. hyper: [3] beta1, [4] 1 - beta1, [5] beta2, [6] 1 - beta2, [7] epsilon,
// [8] 1 - beta1^t, [9] sqrt(1 - beta2^t).
static inline float updated(float p, float g, float* s, __global const float* hyper) {
#if DECOUPLED
  p *= 1.0f - hyper[0] * hyper[1];
#else
  g += hyper[1] * p;
#endif
  s[0] += (g - s[0]) * hyper[4];
  s[1] = s[1] * hyper[5] + hyper[6] * g * g;
#if AMSGRAD
  s[2] = s[1] > s[2] ? s[1] : s[2];
  const float v = s[2];
#else
  const float v = s[1];
#endif
  return p - hyper[0] / hyper[8] * (s[0] / (sqrt(v) / hyper[9] + hyper[7]));
}
#elif RULE == RMSPROP
// states: v, then momentum, then mean gradient. hyper: [3] alpha, [4] 1 - alpha, [5] epsilon,
// [6] momentum.
static inline float updated(const float p, float g, float* s, __global const float* hyper) {
  g += hyper[1] * p;
  s[0] = s[0] * hyper[3] + hyper[4] * g * g;
#if CENTERED
  float* const mean = s + 1 + MOMENTUM;
  mean[0] += (g - mean[0]) * hyper[4];
  const float v = s[0] - mean[0] * mean[0];
#else
  const float v = s[0];
#endif
  const float step = g / (sqrt(v) + hyper[5]);
#if MOMENTUM
  s[1] = s[1] * hyper[6] + step;
  return p - hyper[0] * s[1];
#else
  return p - hyper[0] * step;
#endif
}
#elif RULE == ADAGRAD
// states: sum of squares. hyper: [0] the rate after its decay, [3] epsilon.
static inline float updated(const float p, float g, float* s, __global const float* hyper) {
  g += hyper[1] * p;
  s[0] += g * g;
  return p - hyper[0] * (g / (sqrt(s[0]) + hyper[3]));
}
#elif RULE == LION
// states: m. hyper: [3] beta1, [4] 1 - beta1, [5] beta2, [6] 1 - beta2.
static inline float updated(const float p, const float g, float* s, __global const float* hyper) {
  const float mixed = hyper[3] * s[0] + hyper[4] * g;
  s[0] = hyper[5] * s[0] + hyper[6] * g;
  const float direction = mixed > 0.0f ? 1.0f : mixed < 0.0f ? -1.0f : mixed;
  return p * (1.0f - hyper[0] * hyper[1]) - hyper[0] * direction;
}
#endif

__kernel void optimizer_generic_block(__global const float* param, __global const float* grad,
                                      __global const float* hyper, __global const int* blocks,
                                      __global const float* divisor,
                                      STATE_ARGS(__global const, _in) __global float* param_out,
                                      STATE_ARGS(__global, _out) const int n,
                                      const int grad_offset) {
  const int i = (int)get_global_id(0);
  if (i >= n) return;
  const int group = netcl_group(blocks[get_group_id(0)]);
  float s[STATES + 1];
#if STATES > 0
  s[0] = s0_in[i];
#endif
#if STATES > 1
  s[1] = s1_in[i];
#endif
#if STATES > 2
  s[2] = s2_in[i];
#endif
  float p = param[i];
  if (group != NETCL_FROZEN && !netcl_skips(divisor[0])) {
    hyper += NETCL_HYPER * group;
    p = updated(p, netcl_gradient(grad[grad_offset + i], divisor[0], hyper[2]), s, hyper);
  }
  param_out[i] = p;
#if STATES > 0
  s0_out[i] = s[0];
#endif
#if STATES > 1
  s1_out[i] = s[1];
#endif
#if STATES > 2
  s2_out[i] = s[2];
#endif
}
