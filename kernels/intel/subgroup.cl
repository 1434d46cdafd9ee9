// Sub-groups of SG work-items: by Intel's extension, by Khronos' where every sub-group of the device
// has SG work-items, and elsewhere by local memory, which computes the same on any device.
//
// Contract   the local size is [SG, WAVES, 1]; a sub-group is one row of it. All work-items of the
//            work-group come to every SHARE, SHARED_USED, sg_sum and sg_max.
// Use        SUBGROUP_KERNEL in place of __kernel. LANE: the place in the sub-group.
//            SHARE_SPACE(T, n) declares, once in a kernel, room for n values of a work-item.
//            SHARE(n, values): values[0] ... values[n - 1] can be seen from now on;
//            SHARED(values, i, lane): values[i] of the sub-group's work-item `lane`;
//            SHARED_USED: from now on nobody asks any more. A SHARE follows it, or nothing.
//            READ_ROW(p): p[LANE], where p is the same for the sub-group and has SG readable floats.
//            UNROLL: before loops over what a work-item holds.
// Defines    SG; WAVES; SG_FIXED: all sub-groups of the device are known to have SG work-items.
// Tunables   SG: 8, 16 or 32. WAVES: sub-groups of a work-group.

#if defined(cl_intel_subgroups) && defined(cl_intel_required_subgroup_size)
#define SUBGROUP_KERNEL                                              \
  __attribute__((intel_reqd_sub_group_size(SG)))                     \
  __attribute__((reqd_work_group_size(SG, WAVES, 1))) __kernel
#define HAS_SUBGROUPS 1
#if SG == 32  // for which the compiler of 2022 has no block read
#define READ_ROW(p) ((p)[LANE])
#else
#define READ_ROW(p) as_float(intel_sub_group_block_read((__global const uint*)(p)))
#endif
#else
#define SUBGROUP_KERNEL __attribute__((reqd_work_group_size(SG, WAVES, 1))) __kernel
#define READ_ROW(p) ((p)[LANE])
#if defined(cl_khr_subgroups) && SG_FIXED
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#define HAS_SUBGROUPS 1
#else
#define HAS_SUBGROUPS 0
#endif
#endif

#define LANE ((int)get_local_id(0))
#if HAS_SUBGROUPS
#define UNROLL _Pragma("unroll")
#define SHARE_SPACE(T, n)
#define SHARE(n, values)
#define SHARED(values, i, lane) sub_group_broadcast(values[i], lane)
#define SHARED_USED
#else
#define UNROLL  // the compilers of processors take seconds for it
#define SHARE_SPACE(T, n) __local T shared_values[WAVES][n][SG];
#define SHARE(n, values)                                                                  \
  for (int i = 0; i < (n); ++i)                                                           \
      shared_values[get_local_id(1)][i][LANE] = values[i];                                \
  barrier(CLK_LOCAL_MEM_FENCE);
#define SHARED(values, i, lane) shared_values[get_local_id(1)][i][lane]
#define SHARED_USED barrier(CLK_LOCAL_MEM_FENCE);
#endif
