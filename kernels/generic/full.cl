// full: y[0..n) = value.
// Contract   y: f32[n]. One element a work-item; the local size is the only tunable.
__kernel void full_generic_dense(__global float* y, const int n, const float value) {
  const int i = (int)get_global_id(0);
  if (i < n) y[i] = value;
}
