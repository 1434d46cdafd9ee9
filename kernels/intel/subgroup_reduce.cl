// Sums and maxima over a work-group by sub-groups, in place of the trees of group_reduce.cl, where the
// compiler has sub-groups; two barriers instead of one a level.
//
// Contract   that of group_sum and group_max in group_reduce.cl.
// Defines    GROUP: the local size. Needs group_reduce.cl before it.
// Order      the device's within a sub-group, then sub-groups 0, 1, ...

#if defined(cl_intel_subgroups) && defined(GROUP)
#define SUBGROUP_TREE(NAME, REDUCE, BOTH)                                            \
  static inline float NAME(const float v, __local float* parts) {                   \
    const float part = REDUCE(v);                                                    \
    barrier(CLK_LOCAL_MEM_FENCE);                                                    \
    if (get_sub_group_local_id() == 0) parts[get_sub_group_id()] = part;             \
    barrier(CLK_LOCAL_MEM_FENCE);                                                    \
    float all = parts[0];                                                            \
    for (uint i = 1; i < get_num_sub_groups(); ++i) all = BOTH(all, parts[i]);       \
    return all;                                                                      \
  }
SUBGROUP_TREE(subgroup_sum, sub_group_reduce_add, GROUP_ADD)
SUBGROUP_TREE(subgroup_max, sub_group_reduce_max, fmax)
#define group_sum subgroup_sum
#define group_max subgroup_max
#endif
