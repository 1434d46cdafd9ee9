// Optimiser steps but lamb: one fused update of a flat arena of parameters.
//
// Contract   param and states f32[n], grad at least grad_offset + n, hyper f32[groups,16], blocks
//            i32[ceil(n / 128)] (optimizer_common.cl), divisor f32[1]. Outputs may be the same memory
//            as the inputs.
// Defines    those of optimizer_rules.cl.
// Divisible  nothing. One work-group of 128 a block, so that its group is uniform.
// Order      of operations as in PyTorch.
// Needs optimizer_common.cl and optimizer_rules.cl before it.

__kernel void optimizer_generic_block(__global const float* param, __global const float* grad,
                                      __global const float* hyper, __global const int* blocks,
                                      __global const float* divisor,
                                      STATE_ARGS(__global const, _in) __global float* param_out,
                                      STATE_ARGS(__global, _out) const int n,
                                      const int grad_offset) {
  const int i = (int)get_global_id(0);
  if (i >= n) return;
  const int group = netcl_group(blocks[get_group_id(0)]);
  float s[STATES + 1];
#if STATES > 0
  s[0] = s0_in[i];
#endif
#if STATES > 1
  s[1] = s1_in[i];
#endif
#if STATES > 2
  s[2] = s2_in[i];
#endif
  float p = param[i];
  if (group != NETCL_FROZEN && !netcl_skips(divisor[0])) {
    hyper += NETCL_HYPER * group;
    p = updated(p, netcl_gradient(grad[grad_offset + i], divisor[0], hyper[2]), s, hyper);
  }
  param_out[i] = p;
#if STATES > 0
  s0_out[i] = s[0];
#endif
#if STATES > 1
  s1_out[i] = s[1];
#endif
#if STATES > 2
  s2_out[i] = s[2];
#endif
}
