// lamb_step: Adam's direction, scaled per slot by |param| / |direction|.
//
// Contract   as optimizer.cl, and slots i32[S,2]: first block and number of blocks of every slot.
//            hyper as for adam. scratch: f32[2 blocks] sums of squares of parameters and of
//            directions, f32[S] trust ratios.
// Divisible  nothing. direction and apply: work-groups of 128, one a block; sums: a work-item a
//            block; ratio: a work-item a slot.
// Order      128 squares in order a block, then a slot's blocks in order: the same on every device.
// Source     You et al., "Large batch optimization for deep learning: training BERT in 76 minutes",
//            ICLR 2020, algorithm 2.

static inline float direction(const float p, const float m, const float v,
                              __global const float* hyper) {
  return m / hyper[8] / (sqrt(v) / hyper[9] + hyper[7]) + hyper[1] * p;
}

__kernel void lamb_generic_moments(__global const float* grad, __global const float* hyper,
                                   __global const int* blocks, __global const float* divisor,
                                   __global const float* m_in, __global const float* v_in,
                                   __global float* m_out, __global float* v_out, const int n,
                                   const int grad_offset) {
  const int i = (int)get_global_id(0);
  if (i >= n) return;
  const int group = netcl_group(blocks[get_group_id(0)]);
  float m = m_in[i], v = v_in[i];
  if (group != NETCL_FROZEN && !netcl_skips(divisor[0])) {
    hyper += NETCL_HYPER * group;
    const float g = netcl_gradient(grad[grad_offset + i], divisor[0], hyper[2]);
    m += (g - m) * hyper[4];
    v = v * hyper[5] + hyper[6] * g * g;
  }
  m_out[i] = m;
  v_out[i] = v;
}

__kernel void lamb_generic_sums(__global const float* param, __global const float* hyper,
                                __global const int* blocks, __global const float* m,
                                __global const float* v, __global float* sums, const int n,
                                const int n_blocks) {
  const int b = (int)get_global_id(0);
  if (b >= n_blocks) return;
  const int group = netcl_group(blocks[b]);
  hyper += group == NETCL_FROZEN ? 0 : NETCL_HYPER * group;
  const int last = min(n, (b + 1) * NETCL_BLOCK);
  float params = 0.0f, directions = 0.0f;
  for (int i = b * NETCL_BLOCK; i < last; ++i) {
    const float p = param[i], r = direction(p, m[i], v[i], hyper);
    params += p * p;
    directions += r * r;
  }
  sums[2 * b] = params;
  sums[2 * b + 1] = directions;
}

__kernel void lamb_generic_ratio(__global const float* sums, __global const int* slots,
                                 __global float* ratio, const int n_slots) {
  const int s = (int)get_global_id(0);
  if (s >= n_slots) return;
  const int first = slots[2 * s], last = first + slots[2 * s + 1];
  float params = 0.0f, directions = 0.0f;
  for (int b = first; b < last; ++b) {
    params += sums[2 * b];
    directions += sums[2 * b + 1];
  }
  ratio[s] = params > 0.0f && directions > 0.0f ? sqrt(params) / sqrt(directions) : 1.0f;
}

__kernel void lamb_generic_apply(__global const float* param, __global const float* hyper,
                                 __global const int* blocks, __global const float* divisor,
                                 __global const float* m, __global const float* v,
                                 __global const float* ratio, __global float* param_out,
                                 const int n) {
  const int i = (int)get_global_id(0);
  if (i >= n) return;
  const int block = blocks[get_group_id(0)], group = netcl_group(block);
  float p = param[i];
  if (group != NETCL_FROZEN && !netcl_skips(divisor[0])) {
    hyper += NETCL_HYPER * group;
    p -= hyper[0] * ratio[netcl_slot(block)] * direction(p, m[i], v[i], hyper);
  }
  param_out[i] = p;
}
