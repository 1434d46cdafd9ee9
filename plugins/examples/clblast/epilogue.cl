// What follows a product: y = activation(y + bias), in place.
// Contract   bias: [n], or a stand-in without HAS_BIAS; y: [elements], rows of n. Local size 64.
// Defines    HAS_BIAS; ACTIVATION: ACTIVATION_none, _relu, _tanh or _sigmoid.
#define ACTIVATION_none 0
#define ACTIVATION_relu 1
#define ACTIVATION_tanh 2
#define ACTIVATION_sigmoid 3

__kernel void matmul_clblast_epilogue(__global const float* bias, __global float* y, const int n,
                               const long elements) {
  const long i = (long)get_global_id(0);
  if (i >= elements) return;
  float v = y[i];
#if HAS_BIAS
  v += bias[i % n];
#endif
#if ACTIVATION == ACTIVATION_relu
  v = v < 0.0f ? 0.0f : v;  // NaN stays
#elif ACTIVATION == ACTIVATION_tanh
  v = tanh(v);
#elif ACTIVATION == ACTIVATION_sigmoid
  v = 1.0f / (1.0f + exp(-v));
#endif
  y[i] = v;
}
