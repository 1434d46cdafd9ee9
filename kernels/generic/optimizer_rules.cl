// The rules of all optimisers but lamb: updated(p, g, s, hyper) is the new parameter, of p and its
// divided gradient g, and changes the states s.
//
// Defines    RULE: SGD ADAM RMSPROP ADAGRAD LION; STATES: 0 to 3; DECOUPLED: 1 for adamw, else 0;
//            AMSGRAD MOMENTUM CENTERED: 0 or 1, what the states are. REAL (optimizer_common.cl): the
//            type of p, g and s. HYPER: how hyper is declared.
// Use        STATE_ARGS(qualifier, suffix): a kernel's arguments for the states.
// Order      of operations as in PyTorch.

#define SGD 1
#define ADAM 2
#define RMSPROP 3
#define ADAGRAD 4
#define LION 5

#ifndef HYPER
#define HYPER __global const float* hyper
#endif

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
static inline REAL updated(const REAL p, REAL g, REAL* s, HYPER) {
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
static inline REAL updated(REAL p, REAL g, REAL* s, HYPER) {
#if DECOUPLED
  p *= 1.0f - hyper[0] * hyper[1];
#else
  g += hyper[1] * p;
#endif
  s[0] += (g - s[0]) * hyper[4];
  s[1] = s[1] * hyper[5] + hyper[6] * g * g;
#if AMSGRAD
  s[2] = s[1] > s[2] ? s[1] : s[2];
  const REAL v = s[2];
#else
  const REAL v = s[1];
#endif
  return p - hyper[0] / hyper[8] * (s[0] / (sqrt(v) / hyper[9] + hyper[7]));
}
#elif RULE == RMSPROP
// states: v, then momentum, then mean gradient. hyper: [3] alpha, [4] 1 - alpha, [5] epsilon,
// [6] momentum.
static inline REAL updated(const REAL p, REAL g, REAL* s, HYPER) {
  g += hyper[1] * p;
  s[0] = s[0] * hyper[3] + hyper[4] * g * g;
#if CENTERED
  REAL* const mean = s + 1 + MOMENTUM;
  mean[0] += (g - mean[0]) * hyper[4];
  const REAL v = s[0] - mean[0] * mean[0];
#else
  const REAL v = s[0];
#endif
  const REAL step = g / (sqrt(v) + hyper[5]);
#if MOMENTUM
  s[1] = s[1] * hyper[6] + step;
  return p - hyper[0] * s[1];
#else
  return p - hyper[0] * step;
#endif
}
#elif RULE == ADAGRAD
// states: sum of squares. hyper: [0] the rate after its decay, [3] epsilon.
static inline REAL updated(const REAL p, REAL g, REAL* s, HYPER) {
  g += hyper[1] * p;
  s[0] += g * g;
  return p - hyper[0] * (g / (sqrt(s[0]) + hyper[3]));
}
#elif RULE == LION
// states: m. hyper: [3] beta1, [4] 1 - beta1, [5] beta2, [6] 1 - beta2.
static inline REAL updated(const REAL p, const REAL g, REAL* s, HYPER) {
  const REAL mixed = hyper[3] * s[0] + hyper[4] * g;
  s[0] = hyper[5] * s[0] + hyper[6] * g;
  const REAL direction =
      mixed > 0.0f ? (REAL)(1.0f) : mixed < 0.0f ? (REAL)(-1.0f) : mixed;
  return p * (1.0f - hyper[0] * hyper[1]) - hyper[0] * direction;
}
#endif
