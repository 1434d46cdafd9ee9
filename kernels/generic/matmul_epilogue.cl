// What follows the sum of a matmul: y = activation(sum + bias).
// Defines    HAS_BIAS; BIAS_DTYPE; ACTIVATION: ACTIVATION_none, _relu, _tanh or _sigmoid.
// Needs      storage.cl before it.
// NaN        passes through every activation.
#define ACTIVATION_none 0
#define ACTIVATION_relu 1
#define ACTIVATION_tanh 2
#define ACTIVATION_sigmoid 3
#if ACTIVATION == ACTIVATION_relu
static inline float activate(const float v) { return v < 0.0f ? 0.0f : v; }
static inline float8 activate8(const float8 v) { return select(v, (float8)0, v < (float8)0); }
#elif ACTIVATION == ACTIVATION_tanh
static inline float activate(const float v) { return tanh(v); }
static inline float8 activate8(const float8 v) { return tanh(v); }
#elif ACTIVATION == ACTIVATION_sigmoid
static inline float activate(const float v) { return 1.0f / (1.0f + exp(-v)); }
static inline float8 activate8(const float8 v) { return 1.0f / (1.0f + exp(-v)); }
#else
static inline float activate(const float v) { return v; }
static inline float8 activate8(const float8 v) { return v; }
#endif
#if HAS_BIAS
#define BIAS(n) LOAD(BIAS_DTYPE)(bias, n)
#else
#define BIAS(n) 0.0f
#endif
