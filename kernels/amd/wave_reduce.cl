// Sums and maxima over a work-group by exchange between the work-items of a wave, in place of the
// trees of group_reduce.cl, where the compiler is AMD's; two barriers instead of one a level.
//
// Contract   that of group_sum and group_max in group_reduce.cl.
// Defines    GROUP: the local size, at least 32. Needs group_reduce.cl before it.
// Order      within 32 neighbours a tree: what is 16 further, 8, ...; then their results in order.
//            The same for waves of 32 and 64.

#if defined(__AMDGCN__) && defined(GROUP)
// What the work-item `step` further among 32 neighbours holds; rows of 32 are exchanged by all waves.
static inline float wave_neighbour(const float v, const int step) {
  const int from = ((int)get_local_id(0) ^ step) * 4;
  return as_float(__builtin_amdgcn_ds_bpermute(from, as_int(v)));
}

#define WAVE_TREE(NAME, BOTH)                                                  \
  static inline float NAME(float v, __local float* parts) {                   \
    const int t = (int)get_local_id(0);                                        \
    _Pragma("unroll") for (int step = 16; step > 0; step /= 2)                 \
        v = BOTH(v, wave_neighbour(v, step));                                  \
    barrier(CLK_LOCAL_MEM_FENCE);                                              \
    if (t % 32 == 0) parts[t / 32] = v;                                        \
    barrier(CLK_LOCAL_MEM_FENCE);                                              \
    float all = parts[0];                                                      \
    for (int i = 1; i < GROUP / 32; ++i) all = BOTH(all, parts[i]);            \
    return all;                                                                \
  }
WAVE_TREE(wave_sum, GROUP_ADD)
WAVE_TREE(wave_max, fmax)
#define group_sum wave_sum
#define group_max wave_max
#endif
