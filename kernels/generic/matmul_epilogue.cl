// What follows the sum of a matmul: y = activation(sum + bias).
// Defines    HAS_BIAS; BIAS_DTYPE; ACTIVATION: ACTIVATION_none, _relu, _tanh or _sigmoid.
//            FLOATV (vector.cl), if it is there, is the type of activate_vector.
// Needs      storage.cl before it, and vector.cl for FLOATV.
// NaN        passes through every activation.
#define ACTIVATION_none 0
#define ACTIVATION_relu 1
#define ACTIVATION_tanh 2
#define ACTIVATION_sigmoid 3
#if ACTIVATION == ACTIVATION_relu
static inline float activate(const float v) { return v < 0.0f ? 0.0f : v; }
#define ACTIVATED_VECTOR(v) select(v, (FLOATV)0, v < (FLOATV)0)
#elif ACTIVATION == ACTIVATION_tanh
static inline float activate(const float v) { return tanh(v); }
#define ACTIVATED_VECTOR(v) tanh(v)
#elif ACTIVATION == ACTIVATION_sigmoid
static inline float activate(const float v) { return 1.0f / (1.0f + exp(-v)); }
#define ACTIVATED_VECTOR(v) (1.0f / (1.0f + exp(-v)))
#else
static inline float activate(const float v) { return v; }
#define ACTIVATED_VECTOR(v) v
#endif
#ifdef FLOATV
static inline FLOATV activate_vector(const FLOATV v) { return ACTIVATED_VECTOR(v); }
#endif
#if HAS_BIAS
#define BIAS(n) LOAD(BIAS_DTYPE)(bias, n)
#else
#define BIAS(n) 0.0f
#endif
