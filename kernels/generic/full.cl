// full: y[0..n) = value.
// Contract   y: Y_DTYPE[n]. One element a work-item; the local size is the only tunable.
//            Needs storage.cl before it.
__kernel void full_generic_dense(__global TYPE(Y_DTYPE)* y, const int n, const float value) {
  const int i = (int)get_global_id(0);
  if (i < n) STORE(Y_DTYPE)(y, i, value);
}
