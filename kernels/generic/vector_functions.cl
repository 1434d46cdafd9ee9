// expm1, log, log1p and tanh in straight-line code, in place of OpenCL's own: many compilers for
// CPUs call a scalar function for every element of a loop, and vectorise this. Float arguments only.
//
// Contract   errors of at most 2 units in the last place, log1p 3, where exp has 1; infinities, NaN
//            and denormal numbers as OpenCL's; -0 may give 0.
// Order      none: one number each.
// Source     polynomials fitted by Remez's algorithm to what is named beside them.

// Some compilers have them as macros.
#undef expm1
#undef log
#undef log1p
#undef tanh
#define expm1 netcl_expm1
#define log netcl_log
#define log1p netcl_log1p
#define tanh netcl_tanh

static inline float netcl_expm1(const float x) {
  // x + x^2 p for |x| <= 1/2.
  float p = 0.000199931412f;
  p = p * x + 0.0013997391f;
  p = p * x + 0.0083330721f;
  p = p * x + 0.0416653177f;
  p = p * x + 0.16666668f;
  p = p * x + 0.5f;
  const float far = exp(x) - 1.0f;
  return fabs(x) <= 0.5f ? p * x * x + x : far;
}

static inline float netcl_log(const float x) {
  // x = 2^n (1 + f), f from sqrt(1/2) - 1 to sqrt(2) - 1.
  const int tiny = x < 1.17549435e-38f;
  const int bits = as_int(tiny ? x * 8388608.0f : x);
  const int above = (bits - 0x3f3504f3) >> 23;
  const float f = as_float(bits - (above << 23)) - 1.0f;
  const float n = (float)(tiny ? above - 23 : above);
  // log(1 + f) = f - f^2 / 2 + f^3 p.
  float p = 0.0691609189f;
  p = p * f - 0.117889426f;
  p = p * f + 0.118721415f;
  p = p * f - 0.123844577f;
  p = p * f + 0.142188008f;
  p = p * f - 0.166692483f;
  p = p * f + 0.200022182f;
  p = p * f - 0.249999866f;
  p = p * f + 0.333333106f;
  const float square = f * f;
  const float y = (p * square * f - n * 2.12194440e-4f - 0.5f * square) + f + n * 0.693359375f;
  return x > 0.0f ? (x < INFINITY ? y : INFINITY) : x == 0.0f ? -INFINITY : NAN;
}

static inline float netcl_log1p(const float x) {
  // What is lost in u is made good by x / (u - 1).
  const float u = 1.0f + x;
  const float y = netcl_log(u) * (x / (u - 1.0f));
  return u == 1.0f ? x : u < INFINITY ? y : u;
}

static inline float netcl_tanh(const float x) {
  // x + x^3 p for |x| <= 5/8.
  const float square = x * x, size = fabs(x);
  float p = -0.00571750435f;
  p = p * square + 0.0206510515f;
  p = p * square - 0.0537436633f;
  p = p * square + 0.133314937f;
  p = p * square - 0.33333284f;
  const float far = 1.0f - 2.0f / (exp(2.0f * size) + 1.0f);
  return size <= 0.625f ? p * square * x + x : copysign(far, x);
}
