// The activations that OpenCL computes faster than the host's library does: y = activation(y).
// Contract   y: [elements], in place. Local size 64.
// Defines    SIGMOID: 1, or 0 for tanh.
__kernel void matmul_openblas_activation(__global float* y, const long elements) {
  const long i = (long)get_global_id(0);
  if (i >= elements) return;
#if SIGMOID
  y[i] = 1.0f / (1.0f + exp(-y[i]));
#else
  y[i] = tanh(y[i]);
#endif
}
