// What elementwise kernels and chains share: functions that expressions may call, and the inputs'
// strides along a run.
//
// Contract   normal_cdf(x): the distribution function of the normal distribution.
//            RUN0 ... RUN5: the strides of inputs 0 ... 5 along the last dimension, with s0 ... s5 at
//            hand where they are not 0 or 1.
// Defines    PIECE, STEP0 ... STEP2 or STEP5 for RUN0 ...
// Order      none: one number each.

// The distribution function of the normal distribution, for EXPR: compilers for CPUs call a scalar erf
// for every element, and vectorise this. With t = 1 / (1 + |x| / sqrt 8) the tail is
// exp(-x^2 / 2) t q, where q is fitted by Remez's algorithm for |x| up to 14: relative error 5e-8, and
// that of the exponent. An expression that has exp(-0.5f * x * x) of its own shares it.
static inline float normal_cdf(const float x) {
  const float t = 1.0f / (1.0f + 0.35355339f * fabs(x));
  float q = -0.0590689367f;
  q = q * t + 0.284574851f;
  q = q * t - 0.487199672f;
  q = q * t + 0.27806691f;
  q = q * t - 0.0266255017f;
  q = q * t + 0.202686804f;
  q = q * t + 0.243103778f;
  q = q * t + 0.282375307f;
  q = q * t + 0.282086418f;
  const float tail = 0.5f * t * q * exp(-0.5f * x * x);
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
