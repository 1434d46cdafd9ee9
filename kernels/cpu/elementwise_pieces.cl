// Elementwise ops whose inputs have the output's order, for CPUs: a work-item does SPAN elements in
// a loop that may be vectorised, for compilers that do not do so over work-items.
//
// Contract   that of elementwise.cl, dense; y may be the memory of an input.
// Defines    those of elementwise.cl; SPAN.
// Divisible  nothing.
// Tunables   SPAN: 256, 1024 or 4096.
// Order      none: one element each.
// Needs loop.cl, storage.cl, vector_functions.cl, elementwise_functions.cl and elementwise.cl before it.

__kernel void elementwise_cpu_pieces(__global const TYPE(X0_DTYPE)* x0,
                                     __global const TYPE(X1_DTYPE)* x1,
                                     __global const TYPE(X2_DTYPE)* x2,
                                     __global TYPE(Y_DTYPE)* y, const int n, const float p0,
                                     const float p1) {
  const int first = SPAN * (int)get_global_id(0), end = min(first + SPAN, n);
  INDEPENDENT
  for (int i = first; i < end; ++i) STORE(Y_DTYPE)(y, i, apply(OPERANDS(i, i, i), p0, p1));
}
