// Intel's matrix units (XMX): a sub-group multiplies 8 x 16 elements by 16 x SG and adds to 8 x SG
// floats. Where the compiler has none, local memory and plain sums do the same, so that layouts and
// kernels can be tried anywhere.
//
// Use        UNIT_SPACE declares, once in a kernel, the room that this takes. MULTIPLY_BLOCK(acc, a, b):
//            all work-items of the work-group come to it. acc, a float8: element i is row i, column
//            LANE. a, an array of 8 PAIRs: a[i] holds, of row i, the elements k = A_K ... of the
//            work-item (PAIR is one element of 16 bits if SG is 16, two if it is 8). b, an array of
//            8 uint: b[i] holds, of column LANE, the elements k = 2 i and, in the high half, 2 i + 1.
// Defines    SG: 8 or 16; DTYPE: of both operands, f16 or bf16.
// Hardware   sub-groups of 8: Arc, Data Center GPU Flex; of 16: Data Center GPU Max. Products are exact,
//            sums f32.
// Order      k in blocks of 16; within a block the device's.
// Source     the extension cl_intel_subgroup_matrix_multiply_accumulate (operand layouts).
// Needs storage.cl and subgroup.cl before it.

#if SG == 16
#define PAIR ushort
#define LANE_K 1
#define UNIT_A(a) as_short8(vload8(0, a))
#else
#define PAIR uint
#define LANE_K 2
#define UNIT_A(a) as_int8(vload8(0, a))
#endif
#define A_K (LANE * LANE_K)

#if defined(cl_intel_subgroup_matrix_multiply_accumulate) && HAS_SUBGROUPS
#define UNIT_SPACE
#define netcl_unit_f16 intel_sub_group_f16_f16_matrix_mad_k16
#define netcl_unit_bf16 intel_sub_group_bf16_bf16_matrix_mad_k16
#define MULTIPLY_BLOCK(acc, a, b) \
  acc = NETCL_JOIN(netcl_unit_, DTYPE)(UNIT_A(a), as_int8(vload8(0, b)), acc);
#else
#define UNIT_SPACE                          \
  __local ushort unit_a[WAVES][8][16];      \
  __local ushort unit_b[WAVES][SG][16];
#define UNIT_VALUE(unit, line, k) \
  LOAD(DTYPE)((__local const TYPE(DTYPE)*)unit[get_local_id(1)][line], k)
#define MULTIPLY_BLOCK(acc, a, b)                                                              \
  {                                                                                            \
    for (int i = 0; i < 8; ++i) {                                                              \
      for (int e = 0; e < LANE_K; ++e)                                                         \
        unit_a[get_local_id(1)][i][A_K + e] = (ushort)((uint)a[i] >> (16 * e));                \
      unit_b[get_local_id(1)][LANE][2 * i] = (ushort)b[i];                                     \
      unit_b[get_local_id(1)][LANE][2 * i + 1] = (ushort)(b[i] >> 16);                         \
    }                                                                                          \
    barrier(CLK_LOCAL_MEM_FENCE);                                                              \
    float sums[8];                                                                             \
    vstore8(acc, 0, sums);                                                                     \
    for (int i = 0; i < 8; ++i)                                                                \
      for (int k = 0; k < 16; ++k)                                                             \
        sums[i] += UNIT_VALUE(unit_a, i, k) * UNIT_VALUE(unit_b, LANE, k);                     \
    acc = vload8(0, sums);                                                                     \
    barrier(CLK_LOCAL_MEM_FENCE);                                                              \
  }
#endif
