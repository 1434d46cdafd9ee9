// Gradient of a convolution's weights: dw[m, q] = sum over images and positions of dy[m] times the
// element of x that weight q = (channel, tap) sees there.
//
// Contract   x: X_DTYPE [N,C,H,W]; dy: D_DTYPE [N,O,OH,OW]; dw: Y_DTYPE [O, C/groups, KH, KW];
//            partial: f32 [splits, O, pitch], pitch >= C/groups * KH * KW. sizes and window as in
//            conv_axis.cl. Split s takes an equal share of the images (panel) or positions (tile).
//            conv2d_grad_weight_generic_sum then adds the splits up.
// Kernels    in conv_weight_grad_panel.cl for CPUs, conv_weight_grad_tile.cl for GPUs,
//            conv_weight_grad_group.cl for few channels; here is what they share.
// Divisible  nothing.
// Order      positions in order within a split, then the splits in order; group: strided partial
//            sums, then a tree. No atomics: the same bits every run.
// Needs storage.cl before it.

#define GROUPS sizes.s7
#define CHANNELS (sizes.s1 / GROUPS)
#define FILTERS (sizes.s4 / GROUPS)
#define IN_PLANE (sizes.s2 * sizes.s3)
#define POSITIONS (sizes.s5 * sizes.s6)

__kernel void conv2d_grad_weight_generic_sum(__global const float* partial,
                                             __global TYPE(Y_DTYPE)* dw, const int total,
                                             const int depth, const int pitch, const int split,
                                             const int splits) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  const int m = i / depth;
  partial += (size_t)m * pitch + (i - m * depth);
  float sum = 0;
  for (int s = 0; s < splits; ++s) sum += partial[(size_t)s * split];
  STORE(Y_DTYPE)(dw, i, sum);
}
