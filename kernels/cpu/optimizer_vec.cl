// Optimiser steps but lamb for CPUs: one fused update of a flat arena of parameters in vectors.
//
// Contract   param and states f32[n], grad at least grad_offset + n, hyper f32[groups,16], blocks
//            i32[ceil(n / 128)] (optimizer_common.cl), divisor f32[1]. Outputs may be the same memory
//            as the inputs.
// Defines    those of optimizer_rules.cl; REAL: FLOATV.
// Divisible  nothing. The elements of a last vector that are not there are zeros.
// Tunables   VECTOR (vector.cl). Argument count: blocks a work-item.
// Order      of operations as in PyTorch.
// Needs storage.cl, vector.cl, parts.cl, optimizer_common.cl and optimizer_rules.cl before it.

// Work-item: count blocks, one after the other.
VECTOR_KERNEL void optimizer_cpu_vec(__global const float* param, __global const float* grad,
                                     __global const float* hyper, __global const int* blocks,
                                     __global const float* divisor,
                                     STATE_ARGS(__global const, _in) __global float* param_out,
                                     STATE_ARGS(__global, _out) const int n,
                                     const int grad_offset, const int count) {
  const int begin = (int)get_global_id(0) * count * NETCL_BLOCK;
  const float by = divisor[0];
  const int skips = netcl_skips(by);
  grad += grad_offset;
  for (int first = begin; first < min(begin + count * NETCL_BLOCK, n); first += NETCL_BLOCK) {
    const int group = netcl_group(blocks[first / NETCL_BLOCK]);
    const int changes = group != NETCL_FROZEN && !skips;
    // Kept in registers: what is stored might be hyper, for all that the compiler knows.
    float h[NETCL_HYPER];
    for (int j = 0; j < NETCL_HYPER; ++j) h[j] = changes ? hyper[NETCL_HYPER * group + j] : 0.0f;
    for (int i = first; i < min(first + NETCL_BLOCK, n); i += VECTOR) {
      const int left = n - i;
      FLOATV s[STATES + 1];
#if STATES > 0
      s[0] = LOADP(f32)(s0_in + i, left, 0.0f);
#endif
#if STATES > 1
      s[1] = LOADP(f32)(s1_in + i, left, 0.0f);
#endif
#if STATES > 2
      s[2] = LOADP(f32)(s2_in + i, left, 0.0f);
#endif
      FLOATV p = LOADP(f32)(param + i, left, 0.0f);
      if (changes) p = updated(p, netcl_gradient(LOADP(f32)(grad + i, left, 0.0f), by, h[2]), s, h);
      STOREP(f32)(param_out + i, left, p);
#if STATES > 0
      STOREP(f32)(s0_out + i, left, s[0]);
#endif
#if STATES > 1
      STOREP(f32)(s1_out + i, left, s[1]);
#endif
#if STATES > 2
      STOREP(f32)(s2_out + i, left, s[2]);
#endif
    }
  }
}
