// Chains of elementwise ops whose inputs have the output's order, for CPUs: a work-item does SPAN
// elements in a loop that may be vectorised, for compilers that do not do so over work-items.
//
// Contract   that of chain.cl, dense.
// Defines    those of chain.cl, dense; SPAN.
// Divisible  nothing.
// Tunables   SPAN: 256, 1024 or 4096.
// Order      none: one element each.
// Needs loop.cl, storage.cl, vector_functions.cl, elementwise_functions.cl and chain.cl before it.

__kernel void chain_cpu_pieces(INPUTS, __global TYPE(Y_DTYPE)* y, const int n) {
  const int first = SPAN * (int)get_global_id(0), end = min(first + SPAN, n);
  INDEPENDENT
  for (int i = first; i < end; ++i) {
    READ0(i) READ1(i) READ2(i) READ3(i) READ4(i) READ5(i)
    CODE
    STORE(Y_DTYPE)(y, i, RESULT);
  }
}
