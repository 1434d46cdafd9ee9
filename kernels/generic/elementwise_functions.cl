// What elementwise kernels and chains share: functions that expressions may call, and the inputs'
// strides along a run.
//
// Contract   normal_cdf(x): the distribution function of the normal distribution.
//            RUN0 ... RUN5: the strides of inputs 0 ... 5 along the last dimension, with s0 ... s5 at
//            hand where they are not 0 or 1.
// Defines    PIECE, STEP0 ... STEP2 or STEP5 for RUN0 ...
// Order      none: one number each.

// The distribution function of the normal distribution, for EXPR: compilers for CPUs call a scalar erf
// for every element, and vectorise this. With z = |x| / sqrt 2 and t = 1 / (1 + z / 2) the tail is
// t exp(P(t) - z^2) / 2; P is the Chebyshev fit of degree 9 on z from 0 to 10. Error below 4e-7.
static inline float normal_cdf(const float x) {
  const float z = fabs(x) * 0.70710678f;
  const float t = 1.0f / (1.0f + 0.5f * z);
  float p = 0.144930214f;
  p = p * t - 0.6808272f;
  p = p * t + 1.15673375f;
  p = p * t - 0.696251929f;
  p = p * t - 0.0802804306f;
  p = p * t + 0.00126758532f;
  p = p * t + 0.0346027985f;
  p = p * t + 0.3866404f;
  p = p * t + 0.998632789f;
  p = p * t - 1.26544797f;
  const float tail = 0.5f * t * exp(p - z * z);
  return x < 0.0f ? tail : 1.0f - tail;
}

#ifdef PIECE
#if STEP0 == 2
#define RUN0 s0.s7
#else
#define RUN0 STEP0
#endif
#if STEP1 == 2
#define RUN1 s1.s7
#else
#define RUN1 STEP1
#endif
#if STEP2 == 2
#define RUN2 s2.s7
#else
#define RUN2 STEP2
#endif
#ifdef STEP3
#if STEP3 == 2
#define RUN3 s3.s7
#else
#define RUN3 STEP3
#endif
#if STEP4 == 2
#define RUN4 s4.s7
#else
#define RUN4 STEP4
#endif
#if STEP5 == 2
#define RUN5 s5.s7
#else
#define RUN5 STEP5
#endif
#endif
#endif
