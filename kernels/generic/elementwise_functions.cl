// Functions that the expressions of elementwise ops may call.
//
// Contract   normal_cdf(x): the distribution function of the normal distribution.
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
