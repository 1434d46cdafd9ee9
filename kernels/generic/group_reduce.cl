// Sum and maximum over a work-group, for the kernels that give a row to a group.
//
// Contract   parts: GROUP floats of local memory, free to be overwritten once all work-items have come
//            here; every work-item of the group calls, with its own v, and gets the same result.
// Defines    GROUP: the local size, a power of two. Without it the file is empty.
// Order      a tree: work-item t takes what t + GROUP / 2 holds, then t + GROUP / 4, ...

#ifdef GROUP
#define GROUP_TREE(NAME, BOTH)                                                \
  static inline float NAME(const float v, __local float* parts) {             \
    const int t = (int)get_local_id(0);                                       \
    barrier(CLK_LOCAL_MEM_FENCE);                                             \
    parts[t] = v;                                                             \
    barrier(CLK_LOCAL_MEM_FENCE);                                             \
    for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {          \
      if (t < half_size) parts[t] = BOTH(parts[t], parts[t + half_size]);     \
      barrier(CLK_LOCAL_MEM_FENCE);                                           \
    }                                                                         \
    return parts[0];                                                          \
  }
#define GROUP_ADD(a, b) ((a) + (b))
GROUP_TREE(group_sum, GROUP_ADD)
GROUP_TREE(group_max, fmax)
#endif
